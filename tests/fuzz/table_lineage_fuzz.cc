// Lineages of tables: any bytes decode to a Status or to a lineage that survives a round trip; and
// pages of memory, as a scan for tables and log segments meets them, give heads or nothing.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "db/manifest/state_record.h"
#include "db/manifest/table_lineage.h"
#include "db/salvage/memory_scan.h"
#include "table/format/log_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre;  // NOLINT(google-build-using-namespace): a fuzzer has no other scope.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  TableLineage lineage;
  if (DecodeTableLineage(bytes, &lineage).ok()) {
    TableLineage again;
    if (!DecodeTableLineage(EncodeTableLineage(lineage), &again).ok()) std::abort();
    if (!(again == lineage)) std::abort();
  }
  std::string page = bytes;
  page.resize(4096);
  TableMeta meta;
  LogSegmentHeader header;
  Status status;
  if (FindFragmentHead(page, 1, &meta, &status) && meta.database_id != 1) std::abort();
  if (FindLogHead(page, 1, &header, &status) && header.database_id != 1) std::abort();
  if (StateRecordBytes(page, 1) != 0) DecodeStateRecord(bytes, 1, &lineage).IgnoreError();
  return 0;
}
