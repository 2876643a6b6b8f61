// web_assets() itself is in a source that actors/api/web/embed.py generates.
#include "actors/api/web_assets.h"

#include <algorithm>

namespace tandem::api {

const WebAsset* find_web_asset(std::string_view path) {
  const auto assets = web_assets();
  const auto found =
      std::find_if(assets.begin(), assets.end(), [&](const WebAsset& a) { return a.path == path; });
  return found == assets.end() ? nullptr : &*found;
}

}  // namespace tandem::api
