// The web page's files by HTTP: with an ETag, and compressed for clients that accept it. Who may
// see the page is decided in http_door.h.
#pragma once

#include <optional>

#include "runtime/http/http.h"

namespace tandem::api {

// The answer to a GET of a file of the page; nullopt for any other request.
std::optional<http::HttpResponse> web_file(const http::HttpRequest& request);

// The answer to a request for "/" from a browser without a key: a page that says how to get one.
http::HttpResponse not_signed_in();

// Whether the request is for a file that a browser without a key may have, since not_signed_in()
// uses it. Such files say nothing about this cluster.
bool is_open_file(const http::HttpRequest& request);

}  // namespace tandem::api
