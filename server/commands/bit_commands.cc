#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/command_lists.h"
#include "server/resp/numbers.h"

// Strings as arrays of bits, the first of which is the highest one of the first byte.

namespace nacre::server {
namespace {

constexpr int64_t kBitsMax = int64_t{512} * 1024 * 1024 * 8;
constexpr const char* kBadOffset = "ERR bit offset is not an integer or out of range";

bool BitOf(const std::string& value, int64_t bit) {
  const auto byte = static_cast<size_t>(bit / 8);
  return byte < value.size() && (static_cast<unsigned char>(value[byte]) >> (7 - bit % 8) & 1) != 0;
}

void SetBitOf(std::string* value, int64_t bit, bool on) {
  const auto byte = static_cast<size_t>(bit / 8);
  if (byte >= value->size()) value->resize(byte + 1, '\0');
  const unsigned mask = 1U << (7 - bit % 8);
  const auto old = static_cast<unsigned char>((*value)[byte]);
  (*value)[byte] = static_cast<char>(on ? old | mask : old & ~mask);
}

bool OffsetArgument(Call& call, size_t at, int64_t* bit) {
  if (ParseInteger(call.arg(at), bit) && *bit >= 0 && *bit < kBitsMax) return true;
  call.reply.Error(kBadOffset);
  return false;
}

Task<void> SetBit(Call& call) {
  int64_t bit = 0;
  int64_t on = 0;
  if (!OffsetArgument(call, 2, &bit)) co_return;
  if (!ParseInteger(call.arg(3), &on) || on < 0 || on > 1) {
    call.reply.Error("ERR bit is not an integer or out of range");
    co_return;
  }
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  if (!meta.has_value()) meta.emplace();
  call.reply.Integer(BitOf(meta->value, bit) ? 1 : 0);
  SetBitOf(&meta->value, bit, on == 1);
  call.unit->Save(call.database, call.arg(1), *meta);
}

Task<void> GetBit(Call& call) {
  int64_t bit = 0;
  if (!OffsetArgument(call, 2, &bit)) co_return;
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (typed) call.reply.Integer(meta.has_value() && BitOf(meta->value, bit) ? 1 : 0);
}

/// The range of bits that arguments `at` (first, last, BYTE or BIT) mean, as [first, behind); all
/// of them, where arguments are missing. Answers an error and false if they are malformed.
struct BitRange {
  int64_t first = 0;
  int64_t last = -1;
  bool of_bits = false;

  bool Parse(Call& call, size_t at) {
    if (call.argc() > at && !IntegerArgument(call, at, &first)) return false;
    if (call.argc() > at + 1 && !IntegerArgument(call, at + 1, &last)) return false;
    if (call.argc() <= at + 2) return true;
    of_bits = SameWord(call.arg(at + 2), "BIT");
    if (call.argc() == at + 3 && (of_bits || SameWord(call.arg(at + 2), "BYTE"))) return true;
    call.reply.Error(kSyntaxError);
    return false;
  }
  /// Makes them bits of a string of so many bytes; an empty range ends where it begins.
  void Clamp(size_t bytes) {
    const int64_t size = static_cast<int64_t>(bytes) * (of_bits ? 8 : 1);
    if (first < 0 && last < 0 && first > last) {
      first = last = 0;
      return;
    }
    if (first < 0) first = std::max<int64_t>(first + size, 0);
    if (last < 0) last = std::max<int64_t>(last + size, 0);
    last = std::min(last, size - 1) + 1;
    if (first >= last) first = last = 0;
    if (!of_bits) {
      first *= 8;
      last *= 8;
    }
  }
};

Task<void> BitCount(Call& call) {
  if (call.argc() == 3) {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  BitRange range;
  if (!range.Parse(call, 2)) co_return;
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  const std::string value = meta.has_value() ? meta->value : std::string();
  range.Clamp(value.size());
  int64_t count = 0;
  int64_t bit = range.first;
  for (; bit < range.last && bit % 8 != 0; ++bit) count += BitOf(value, bit) ? 1 : 0;
  for (; bit + 8 <= range.last; bit += 8) {
    count += std::popcount(static_cast<unsigned char>(value[static_cast<size_t>(bit / 8)]));
  }
  for (; bit < range.last; ++bit) count += BitOf(value, bit) ? 1 : 0;
  call.reply.Integer(count);
}

Task<void> BitPos(Call& call) {
  int64_t wanted = 0;
  if (!IntegerArgument(call, 2, &wanted)) co_return;
  if (wanted != 0 && wanted != 1) {
    call.reply.Error("ERR The bit argument must be 1 or 0.");
    co_return;
  }
  BitRange range;
  if (!range.Parse(call, 3)) co_return;
  const bool has_end = call.argc() > 4;
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  if (!meta.has_value()) {
    call.reply.Integer(wanted == 1 ? -1 : 0);
    co_return;
  }
  const std::string& value = meta->value;
  range.Clamp(value.size());
  const char nothing = wanted == 1 ? '\0' : '\xff';
  for (int64_t bit = range.first; bit < range.last; ++bit) {
    if (bit % 8 == 0 && bit + 8 <= range.last && value[static_cast<size_t>(bit / 8)] == nothing) {
      bit += 7;
    } else if (BitOf(value, bit) == (wanted == 1)) {
      call.reply.Integer(bit);
      co_return;
    }
  }
  // A string is followed by zeros, unless the end was named.
  const bool behind = wanted == 0 && !has_end && range.first < range.last;
  call.reply.Integer(behind ? static_cast<int64_t>(value.size()) * 8 : -1);
}

Task<void> BitOp(Call& call) {
  const std::string operation = UpperCase(call.arg(1));
  if (operation != "AND" && operation != "OR" && operation != "XOR" && operation != "NOT") {
    call.reply.Error(kSyntaxError);
    co_return;
  }
  if (operation == "NOT" && call.argc() != 4) {
    call.reply.Error("ERR BITOP NOT must be called with a single source key.");
    co_return;
  }
  std::vector<std::string> values;
  size_t size = 0;
  for (size_t i = 3; i < call.argc(); ++i) {
    std::optional<Meta> meta;
    const bool typed = co_await FindOfType(call, call.arg(i), Type::kString, &meta);
    if (!typed) co_return;
    values.push_back(meta.has_value() ? meta->value : std::string());
    size = std::max(size, values.back().size());
  }
  Meta result;
  result.value = values[0];
  result.value.resize(size, '\0');
  for (size_t i = 1; i < values.size(); ++i) {
    for (size_t at = 0; at < size; ++at) {
      const char other = at < values[i].size() ? values[i][at] : '\0';
      char& byte = result.value[at];
      byte = static_cast<char>(operation == "AND"  ? byte & other
                               : operation == "OR" ? byte | other
                                                   : byte ^ other);
    }
  }
  if (operation == "NOT") {
    for (char& byte : result.value) byte = static_cast<char>(~byte);
  }
  const std::optional<Meta> old = co_await call.unit->Find(call.database, call.arg(2));
  if (old.has_value()) call.unit->Remove(call.database, call.arg(2), *old);
  if (size > 0) call.unit->Save(call.database, call.arg(2), result);
  call.reply.Integer(static_cast<int64_t>(size));
}

// ---- BITFIELD -----------------------------------------------------------------------------------

enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

/// One operation on an integer of some bits.
struct FieldOperation {
  enum class Kind : uint8_t { kGet, kSet, kIncrement };
  Kind kind = Kind::kGet;
  bool is_signed = false;
  int bits = 0;
  int64_t offset = 0;
  int64_t value = 0;
  Overflow overflow = Overflow::kWrap;
};

bool FieldTypeArgument(Call& call, size_t at, FieldOperation* operation) {
  const std::string_view text = call.arg(at);
  int64_t bits = 0;
  operation->is_signed = text.starts_with("i");
  if ((operation->is_signed || text.starts_with("u")) && ParseInteger(text.substr(1), &bits) &&
      bits >= 1 && bits <= (operation->is_signed ? 64 : 63)) {
    operation->bits = static_cast<int>(bits);
    return true;
  }
  call.reply.Error(
      "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not "
      "supported but i64 is.");
  return false;
}

bool FieldOffsetArgument(Call& call, size_t at, FieldOperation* operation) {
  std::string_view text = call.arg(at);
  const bool by_fields = text.starts_with("#");
  if (by_fields) text.remove_prefix(1);
  int64_t offset = 0;
  if (ParseInteger(text, &offset) && offset >= 0 && offset < kBitsMax) {
    operation->offset = by_fields ? offset * operation->bits : offset;
    if (operation->offset + operation->bits <= kBitsMax) return true;
  }
  call.reply.Error(kBadOffset);
  return false;
}

bool ParseFieldOperations(Call& call, bool read_only, std::vector<FieldOperation>* operations) {
  Overflow overflow = Overflow::kWrap;
  for (size_t i = 2; i < call.argc();) {
    const std::string word = UpperCase(call.arg(i));
    const size_t rest = call.argc() - i - 1;
    if (word == "OVERFLOW" && rest >= 1) {
      const std::string how = UpperCase(call.arg(i + 1));
      if (how != "WRAP" && how != "SAT" && how != "FAIL") {
        call.reply.Error("ERR Invalid OVERFLOW type specified");
        return false;
      }
      overflow = how == "WRAP"  ? Overflow::kWrap
                 : how == "SAT" ? Overflow::kSaturate
                                : Overflow::kFail;
      i += 2;
      continue;
    }
    FieldOperation operation;
    operation.overflow = overflow;
    const bool gets = word == "GET";
    if (!(gets && rest >= 2) && !((word == "SET" || word == "INCRBY") && rest >= 3)) {
      call.reply.Error(kSyntaxError);
      return false;
    }
    if (!FieldTypeArgument(call, i + 1, &operation) ||
        !FieldOffsetArgument(call, i + 2, &operation)) {
      return false;
    }
    if (!gets && !IntegerArgument(call, i + 3, &operation.value)) return false;
    if (!gets) {
      operation.kind =
          word == "SET" ? FieldOperation::Kind::kSet : FieldOperation::Kind::kIncrement;
    }
    if (read_only && !gets) {
      call.reply.Error("ERR BITFIELD_RO only supports the GET subcommand");
      return false;
    }
    operations->push_back(operation);
    i += gets ? 3 : 4;
  }
  return true;
}

int64_t FieldBits(const std::string& value, const FieldOperation& operation) {
  uint64_t bits = 0;
  for (int i = 0; i < operation.bits; ++i) {
    bits = bits << 1 | (BitOf(value, operation.offset + i) ? 1 : 0);
  }
  if (operation.is_signed && operation.bits < 64 && (bits >> (operation.bits - 1)) != 0) {
    bits |= ~uint64_t{0} << operation.bits;
  }
  return static_cast<int64_t>(bits);
}

/// `old` + `add`, or `add` alone for SET, as a number of these bits; nothing if it may not
/// overflow.
std::optional<int64_t> FieldResult(const FieldOperation& operation, int64_t old) {
  __extension__ using Wide = __int128;
  const bool sets = operation.kind == FieldOperation::Kind::kSet;
  const Wide wide = Wide{sets ? 0 : old} + operation.value;
  const Wide high =
      operation.is_signed ? (Wide{1} << (operation.bits - 1)) - 1 : (Wide{1} << operation.bits) - 1;
  const Wide low = operation.is_signed ? -high - 1 : 0;
  if (wide >= low && wide <= high) return static_cast<int64_t>(wide);
  if (operation.overflow == Overflow::kFail) return std::nullopt;
  if (operation.overflow == Overflow::kSaturate) {
    return static_cast<int64_t>(wide < low ? low : high);
  }
  const Wide span = high - low + 1;
  Wide wrapped = (wide - low) % span;
  if (wrapped < 0) wrapped += span;
  return static_cast<int64_t>(wrapped + low);
}

void StoreField(std::string* value, const FieldOperation& operation, int64_t number) {
  for (int i = 0; i < operation.bits; ++i) {
    SetBitOf(value, operation.offset + i,
             (static_cast<uint64_t>(number) >> (operation.bits - 1 - i) & 1) != 0);
  }
}

/// BITFIELD and BITFIELD_RO.
Task<void> BitField(Call& call) {
  std::vector<FieldOperation> operations;
  const bool read_only = std::string_view(call.command->name) == "bitfield_ro";
  if (!ParseFieldOperations(call, read_only, &operations)) co_return;
  std::optional<Meta> meta;
  const bool typed = co_await FindOfType(call, call.arg(1), Type::kString, &meta);
  if (!typed) co_return;
  if (!meta.has_value()) meta.emplace();
  bool changed = false;
  call.reply.Array(operations.size());
  for (const FieldOperation& operation : operations) {
    const int64_t old = FieldBits(meta->value, operation);
    if (operation.kind == FieldOperation::Kind::kGet) {
      call.reply.Integer(old);
      continue;
    }
    const std::optional<int64_t> result = FieldResult(operation, old);
    if (!result.has_value()) {
      call.reply.Null();
      continue;
    }
    StoreField(&meta->value, operation, *result);
    changed = true;
    call.reply.Integer(operation.kind == FieldOperation::Kind::kSet ? old : *result);
  }
  if (changed) call.unit->Save(call.database, call.arg(1), *meta);
}

constexpr Command kBitCommands[] = {
    {"setbit", &SetBit, 4, kWrites | kMetaRowsOnly, 1, 1, 1},
    {"getbit", &GetBit, 3, kReads | kFast | kMetaRowsOnly, 1, 1, 1},
    {"bitcount", &BitCount, -2, kReads | kMetaRowsOnly, 1, 1, 1},
    {"bitpos", &BitPos, -3, kReads | kMetaRowsOnly, 1, 1, 1},
    {"bitop", &BitOp, -4, kWrites, 2, -1, 1},
    {"bitfield", &BitField, -2, kWrites, 1, 1, 1},
    {"bitfield_ro", &BitField, -2, kReads | kFast, 1, 1, 1},
};

}  // namespace

std::span<const Command> BitCommands() { return kBitCommands; }

}  // namespace nacre::server
