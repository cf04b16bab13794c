#include "db/manifest/state_record.h"

#include <cstring>
#include <memory>

#include "pool/store/mirrored_extent.h"
#include "util/clock.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

// Layout (little-endian; docs/formats.md, "State record"):
//
//     offset size
//          0    4  magic
//          4    4  format version
//          8    8  database id
//         16    4  bytes of the lineage
//         20    n  lineage
//      20 + n    4  CRC32C of everything before
constexpr uint32_t kStateMagic = 0x5253434e;  // "NCSR"
constexpr uint32_t kStateFormatVersion = 1;
constexpr size_t kHeaderBytes = 20;

}  // namespace

std::string EncodeStateRecord(uint64_t database_id, const TableLineage& state) {
  const std::string lineage = EncodeTableLineage(state);
  std::string bytes;
  PutFixed32(&bytes, kStateMagic);
  PutFixed32(&bytes, kStateFormatVersion);
  PutFixed64(&bytes, database_id);
  PutFixed32(&bytes, static_cast<uint32_t>(lineage.size()));
  bytes += lineage;
  PutFixed32(&bytes, Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

uint64_t StateRecordBytes(const Slice& beginning, uint64_t database_id) {
  if (beginning.size() < kHeaderBytes || DecodeFixed32(beginning.data()) != kStateMagic ||
      DecodeFixed64(beginning.data() + 8) != database_id) {
    return 0;
  }
  return kHeaderBytes + uint64_t{DecodeFixed32(beginning.data() + 16)} + kCrcBytes;
}

Status DecodeStateRecord(const Slice& bytes, uint64_t database_id, TableLineage* state) {
  if (bytes.empty() || StateRecordBytes(bytes, database_id) != bytes.size()) {
    return Status::Corruption("state record: no record of this database");
  }
  const size_t body = bytes.size() - kCrcBytes;
  if (DecodeFixed32(bytes.data() + body) != Crc32c(bytes.data(), body)) {
    return Status::Corruption("state record: wrong checksum");
  }
  const uint32_t version = DecodeFixed32(bytes.data() + 4);
  if (version != kStateFormatVersion) {
    return Status::NotSupported("state record: format version " + std::to_string(version));
  }
  return DecodeTableLineage(Slice(bytes.data() + kHeaderBytes, body - kHeaderBytes), state);
}

Status WriteStateRecord(pool::PoolClient* client, const std::vector<ExtentAddr>& copies,
                        const std::string& record) {
  std::unique_ptr<rdma::MemoryRegion> buffer;
  NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client->fabric(), record.size(), &buffer));
  std::memcpy(buffer->data(), record.data(), record.size());
  std::unique_ptr<pool::MirroredExtent> extent;
  NACRE_RETURN_IF_ERROR(pool::MirroredExtent::Open(client->fabric(), copies, &extent));
  uint64_t ticket = 0;
  NACRE_RETURN_IF_ERROR(extent->Write(0,
                                      {.data = buffer->data(),
                                       .size = static_cast<uint32_t>(record.size()),
                                       .region = buffer.get()},
                                      &ticket));
  return extent->Await(ticket,
                       Deadline::After(client->clock(), client->options().operation_timeout));
}

}  // namespace nacre
