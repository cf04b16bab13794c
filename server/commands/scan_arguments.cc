#include "server/commands/scan_arguments.h"

#include <algorithm>
#include <charconv>

#include "server/resp/numbers.h"
#include "server/session/server_state.h"

namespace nacre::server {
namespace {

/// A client that asks for more at once gets so many.
constexpr int64_t kScanCountMax = 100'000;

}  // namespace

bool ScanArguments::Matches(std::string_view key) const {
  return pattern == "*" || MatchesGlob(pattern, key);
}

bool ParseScanArguments(Call& call, size_t at, ScanArguments* scan) {
  const std::string_view text = call.arg(at);
  uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (error != std::errc() || end != text.data() + text.size() ||
      (cursor != 0 && !call.server->cursors.Find(cursor, &scan->place))) {
    call.reply.Error("ERR invalid cursor");
    return false;
  }
  for (size_t i = at + 1; i < call.argc(); i += 2) {
    if (i + 1 == call.argc()) {
      call.reply.Error(kSyntaxError);
      return false;
    }
    if (SameWord(call.arg(i), "COUNT")) {
      int64_t count = 0;
      if (!IntegerArgument(call, i + 1, &count)) return false;
      if (count < 1) {
        call.reply.Error(kSyntaxError);
        return false;
      }
      scan->count = static_cast<size_t>(std::min(count, kScanCountMax));
    } else if (SameWord(call.arg(i), "MATCH")) {
      scan->pattern = call.arg(i + 1);
    } else if (SameWord(call.arg(i), "TYPE") && at == 1) {
      scan->type = call.arg(i + 1);
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  return true;
}

bool ParseLexBound(std::string_view text, char kind, bool upper, std::string* row) {
  row->assign(1, kind);
  if (text == "-") return true;
  if (text == "+") {
    row->front() = static_cast<char>(kind + 1);
    return true;
  }
  if (!text.starts_with("[") && !text.starts_with("(")) return false;
  row->append(text.substr(1));
  if ((text[0] == '[') == upper) row->push_back('\0');
  return true;
}

void AnswerCursor(Call& call, const std::vector<Row>& rows, const ScanArguments& scan) {
  uint64_t cursor = 0;
  if (rows.size() == scan.count) cursor = call.server->cursors.Add(rows.back().key + '\0');
  call.reply.Array(2);
  call.reply.Bulk(std::to_string(cursor));
}

}  // namespace nacre::server
