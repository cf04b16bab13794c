#include "server/store/slots.h"

#include <array>

namespace nacre::server {
namespace {

constexpr std::array<uint16_t, 256> MakeCrcTable() {
  constexpr uint32_t kPolynomial = 0x1021;
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x8000) != 0 ? kPolynomial : 0);
    table[byte] = static_cast<uint16_t>(crc);
  }
  return table;
}

uint32_t Crc16(std::string_view bytes) {
  static constexpr std::array<uint16_t, 256> kTable = MakeCrcTable();
  uint32_t crc = 0;
  for (const char byte : bytes) {
    crc = (crc << 8 & 0xffff) ^ kTable[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return crc;
}

}  // namespace

uint32_t SlotOfKey(std::string_view key) {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close != open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return Crc16(key) % kSlots;
}

std::string SlotPrefix(uint32_t slot) {
  return {static_cast<char>(slot >> 8), static_cast<char>(slot & 0xff)};
}

bool ParseSlotPrefix(std::string_view bytes, uint32_t* slot) {
  if (bytes.size() != 2) return false;
  *slot = static_cast<uint32_t>(static_cast<unsigned char>(bytes[0])) << 8 |
          static_cast<unsigned char>(bytes[1]);
  return *slot < kSlots;
}

}  // namespace nacre::server
