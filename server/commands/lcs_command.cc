#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"
#include "server/session/server_state.h"

// LCS: the longest common subsequence of two strings.

namespace nacre::server {
namespace {

constexpr uint64_t kTableBytesMax = uint64_t{512} << 20;

struct LcsOptions {
  bool length_only = false;
  bool ranges = false;
  bool with_lengths = false;
  int64_t match_length_min = 0;
};

/// Where a run of equal bytes lies in both; ends are included.
struct LcsMatch {
  size_t a_first;
  size_t a_last;
  size_t b_first;
  size_t b_last;
};

struct LcsResult {
  uint32_t length = 0;
  std::string common;
  std::vector<LcsMatch> matches;  ///< From the ends to the beginnings.
};

LcsResult FindLcs(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<uint32_t> lengths((a.size() + 1) * width);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      lengths[i * width + j] =
          a[i - 1] == b[j - 1] ? lengths[(i - 1) * width + j - 1] + 1
                               : std::max(lengths[(i - 1) * width + j], lengths[i * width + j - 1]);
    }
  }
  LcsResult result;
  result.length = lengths.back();
  bool in_match = false;
  for (size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
    if (a[i - 1] == b[j - 1]) {
      result.common.push_back(a[i - 1]);
      if (in_match) {
        result.matches.back().a_first = i - 1;
        result.matches.back().b_first = j - 1;
      } else {
        result.matches.push_back({i - 1, i - 1, j - 1, j - 1});
      }
      in_match = true;
      --i;
      --j;
      continue;
    }
    in_match = false;
    lengths[(i - 1) * width + j] > lengths[i * width + j - 1] ? --i : --j;
  }
  std::reverse(result.common.begin(), result.common.end());
  return result;
}

bool ParseLcsOptions(Call& call, LcsOptions* options) {
  for (size_t i = 3; i < call.argc(); ++i) {
    if (SameWord(call.arg(i), "LEN")) {
      options->length_only = true;
    } else if (SameWord(call.arg(i), "IDX")) {
      options->ranges = true;
    } else if (SameWord(call.arg(i), "WITHMATCHLEN")) {
      options->with_lengths = true;
    } else if (SameWord(call.arg(i), "MINMATCHLEN") && i + 1 < call.argc()) {
      if (!IntegerArgument(call, ++i, &options->match_length_min)) return false;
    } else {
      call.reply.Error(kSyntaxError);
      return false;
    }
  }
  if (options->length_only && options->ranges) {
    call.reply.Error("ERR If you want both the length and indexes, please just use IDX.");
    return false;
  }
  return true;
}

void AnswerRanges(Call& call, const LcsResult& result, const LcsOptions& options) {
  std::vector<LcsMatch> matches = result.matches;
  std::erase_if(matches, [&](const LcsMatch& match) {
    return static_cast<int64_t>(match.a_last - match.a_first + 1) < options.match_length_min;
  });
  const auto range = [&](size_t first, size_t last) {
    call.reply.Array(2);
    call.reply.Integer(static_cast<int64_t>(first));
    call.reply.Integer(static_cast<int64_t>(last));
  };
  call.reply.Map(2);
  call.reply.Bulk("matches");
  call.reply.Array(matches.size());
  for (const LcsMatch& match : matches) {
    call.reply.Array(options.with_lengths ? 3 : 2);
    range(match.a_first, match.a_last);
    range(match.b_first, match.b_last);
    if (options.with_lengths) {
      call.reply.Integer(static_cast<int64_t>(match.a_last - match.a_first + 1));
    }
  }
  call.reply.Bulk("len");
  call.reply.Integer(result.length);
}

Task<void> Lcs(Call& call) {
  std::string values[2];
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<Meta> meta = co_await call.unit->Find(call.database, call.arg(i + 1));
    if (meta.has_value() && meta->type != Type::kString) {
      call.reply.Error("ERR The specified keys must contain string values");
      co_return;
    }
    if (meta.has_value()) values[i] = meta->value;
  }
  LcsOptions options;
  if (!ParseLcsOptions(call, &options)) co_return;
  if ((values[0].size() + 1) * (values[1].size() + 1) > kTableBytesMax / sizeof(uint32_t)) {
    call.reply.Error(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    co_return;
  }
  LcsResult result;
  Offload offload(&call.loop->loop, call.loop->access.workers,
                  [&] { result = FindLcs(values[0], values[1]); });
  co_await offload;
  if (options.length_only) {
    call.reply.Integer(result.length);
  } else if (options.ranges) {
    AnswerRanges(call, result, options);
  } else {
    call.reply.Bulk(result.common);
  }
}

constexpr Command kLcsCommands[] = {{"lcs", &Lcs, -3, kReads, 1, 2, 1}};

}  // namespace

std::span<const Command> LcsCommands() { return kLcsCommands; }

}  // namespace nacre::server
