// The web page's files by HTTP: with an ETag, and compressed for those who take that. Not here: who
// may see the page (http_door.h).
#pragma once

#include <optional>

#include "runtime/net/http.h"

namespace tandem::actors {

// GET of a file of the page. Nothing: the path is none.
std::optional<runtime::HttpResponse> web_file(const runtime::HttpRequest& request);

// What "/" answers to a browser that has no key: how to get one.
runtime::HttpResponse not_signed_in();

// The files that a browser without a key may have, since not_signed_in() uses them: they say
// nothing of this cluster.
bool is_open_file(const runtime::HttpRequest& request);

}  // namespace tandem::actors
