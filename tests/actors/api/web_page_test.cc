// The page's files as the binary holds them: whole, named by their content, and none missing.
#include "actors/api/web_page.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"

namespace tandem::api {
namespace {

std::string text_of(std::string_view path) {
  const WebAsset* asset = find_web_asset(path);
  return asset ? std::string(asset->bytes) : "";
}

// Every path that stands in `text` after `before`, up to a quote.
std::set<std::string> named_in(const std::string& text, const std::string& before) {
  std::set<std::string> paths;
  const std::regex pattern(before + "([^\"']+)[\"']");
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    paths.insert((*at)[1]);
  return paths;
}

TEST(WebAssets, AreTheFilesByteForByte) {
  const std::string folder = std::string(TANDEM_SOURCE_DIR) + "/actors/api/web/";
  EXPECT_EQ(text_of("/"), read_file(folder + "index.html").value());
  EXPECT_EQ(text_of("/unauthorized"), read_file(folder + "unauthorized.html").value());
  for (const char* name : {"app.js", "plot.js", "style.css"})
    EXPECT_EQ(text_of(std::string("/assets/") + name), read_file(folder + name).value()) << name;
  EXPECT_EQ(find_web_asset("/assets/none.js"), nullptr);
  EXPECT_EQ(find_web_asset("/assets/embed.py"), nullptr);
}

TEST(WebAssets, WhatThePageNamesIsThere) {
  for (const WebAsset& asset : web_assets()) {
    if (asset.path.starts_with("/assets/dygraph")) continue;
    const std::string text(asset.bytes);
    for (const std::string& path : named_in(text, "(?:src|href)=[\"'](?=/)"))
      EXPECT_NE(find_web_asset(path), nullptr) << asset.path << " names " << path;
    for (const std::string& path : named_in(text, "from ['\"]\\./"))
      EXPECT_NE(find_web_asset("/assets/" + path), nullptr) << asset.path << " imports " << path;
  }
}

TEST(WebAssets, AnETagStandsForItsBytes) {
  std::set<std::string_view> seen;
  for (const WebAsset& asset : web_assets()) {
    const auto digest = sha256_hex(std::as_bytes(std::span(asset.bytes))).substr(0, 32);
    EXPECT_EQ(asset.etag, "\"" + digest + "\"") << asset.path;
    EXPECT_TRUE(seen.insert(asset.etag).second) << asset.path;
    if (!asset.gzip.empty()) {
      EXPECT_LT(asset.gzip.size(), asset.bytes.size()) << asset.path;
      EXPECT_EQ(asset.gzip.substr(0, 2), "\x1f\x8b") << asset.path;
    }
  }
}

// The content policy allows neither, and model text must never be read as HTML.
TEST(WebAssets, NoInlineScriptOrStyleAndNoHtmlFromText) {
  const std::regex inline_code("<script(?![^>]*src=)|<style|\\son[a-z]+=|\\sstyle=");
  const std::regex from_text("innerHTML|outerHTML|insertAdjacentHTML|document\\.write|eval\\(");
  for (const WebAsset& asset : web_assets()) {
    const std::string text(asset.bytes);
    const bool html = asset.content_type.starts_with("text/html");
    EXPECT_FALSE(html && std::regex_search(text, inline_code)) << asset.path;
    if (!asset.path.ends_with(".js") || asset.path == "/assets/dygraph.js") continue;
    for (std::sregex_iterator at(text.begin(), text.end(), from_text), end; at != end; ++at) {
      const std::size_t line = text.rfind('\n', static_cast<std::size_t>(at->position())) + 1;
      EXPECT_EQ(text.substr(line, 2), "//") << asset.path << " uses " << at->str();
    }
  }
}

TEST(WebAssets, TheLicenceOfDygraphsIsShipped) {
  const std::string text = text_of("/licences.txt");
  EXPECT_NE(text.find("dygraphs"), std::string::npos);
  EXPECT_NE(text.find("Permission is hereby granted"), std::string::npos);
  EXPECT_NE(text_of("/").find("/licences.txt"), std::string::npos);
}

}  // namespace
}  // namespace tandem::api
