// What clients of nacre-server send: any bytes are requests or refused, and the same ones in
// whichever pieces they arrive.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/resp/request_parser.h"

namespace {

using nacre::server::Request;
using nacre::server::RequestLimits;
using nacre::server::RequestParser;

std::vector<std::string> Parse(std::string_view bytes, size_t piece) {
  const RequestLimits limits = {.bulk_bytes_max = 4096, .args_max = 64, .line_bytes_max = 4096};
  RequestParser parser(&limits);
  std::vector<std::string> words;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    parser.Append(bytes.substr(at, piece));
    Request request;
    RequestParser::Result result;
    while ((result = parser.Next(&request)) == RequestParser::Result::kRequest) {
      if (request.args.empty()) std::abort();
      words.emplace_back("request");
      words.insert(words.end(), request.args.begin(), request.args.end());
    }
    if (result == RequestParser::Result::kError) {
      if (parser.error().empty()) std::abort();
      words.emplace_back("error");
      break;
    }
  }
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = Parse(bytes, std::max<size_t>(bytes.size(), 1));
  if (Parse(bytes, data[0] % 16 + size_t{1}) != whole) std::abort();
  return 0;
}
