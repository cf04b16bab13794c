// Goal: a sealed file of an archive's log gives back what was added, up to a torn tail, and nothing
// else: bytes that were changed, pieces and files that were exchanged, and keys that are missing or
// wrong are found. No nonce is used for two texts, also after a crash. Method: files of a few
// batches, which are changed in every way, and read as a restore reads them.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "archive/archive_folder.h"
#include "archive/log_file.h"
#include "archive/log_read_ahead.h"
#include "nacre/write_batch.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "util/coding.h"
#include "util/crypto/key_ring.h"

namespace nacre {
namespace {

using Code = Status::Code;

constexpr uint64_t kLogDatabase = 77;
constexpr size_t kLogSealEnd = 36 + 88;

Sealing SealingOf(const std::string& keys, const std::string& context = "archive") {
  auto ring = std::make_shared<KeyRing>();
  EXPECT_TRUE(IsOk(KeyRing::Parse(keys, ring.get())));
  return {.keys = std::move(ring), .context = context};
}

class SealedLogTest : public testing::Test {
 protected:
  static std::string Batch(uint64_t sequence, const std::string& value) {
    WriteBatch batch;
    EXPECT_TRUE(IsOk(batch.Put("the-key", value)));
    std::string bytes = batch.Data();
    EncodeFixed64(bytes.data(), sequence);
    return bytes;
  }
  static std::string Value(uint64_t sequence) { return "the-value-" + std::to_string(sequence); }

  /// Adds batches number `from` to `to`, two of them at a time.
  void Add(LogFileWriter* writer, uint64_t from, uint64_t to) {
    for (uint64_t n = from; n <= to; ++n) {
      writer->Add(Batch(n, Value(n)), 1000 + n);
      if (n % 2 == 0 || n == to) {
        ASSERT_TRUE(IsOk(writer->Sync()));
      }
    }
  }
  /// A file with batches 11 to 18.
  void Make(const std::string& path, const Sealing& sealing, bool finish) {
    std::unique_ptr<LogFileWriter> writer;
    ASSERT_TRUE(IsOk(LogFileWriter::Create(path, kLogDatabase, 10, sealing, &writer)));
    ASSERT_NO_FATAL_FAILURE(Add(writer.get(), 11, 18));
    if (finish) {
      ASSERT_TRUE(IsOk(writer->Finish()));
    }
    EXPECT_EQ(writer->info().bytes + (finish ? 4 + 32 + 40 + 16 : 0),
              std::filesystem::file_size(path));
  }
  static std::string Bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  static void Put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// Looks at it and reads it, as a restore does. `*last`: how far it came; batches are right.
  Status Read(const std::string& path, const Sealing& sealing, uint64_t* last) {
    *last = 10;
    std::unique_ptr<LogFileReader> reader;
    NACRE_RETURN_IF_ERROR(LogFileReader::Open(path, sealing, &reader));
    LogFileInfo info;
    NACRE_RETURN_IF_ERROR(reader->Look(&info));
    LogReadAhead log({info}, sealing, 1);
    for (;;) {
      const std::vector<ArchivedBatch>* batches = nullptr;
      NACRE_RETURN_IF_ERROR(log.Next(&batches));
      if (batches == nullptr) break;
      for (const ArchivedBatch& batch : *batches) {
        EXPECT_EQ(batch.sequence, *last + 1);
        EXPECT_EQ(batch.micros, 1000 + batch.sequence);
        EXPECT_TRUE(batch.bytes.ToString() == Batch(batch.sequence, Value(batch.sequence)));
        *last = batch.last();
      }
    }
    EXPECT_EQ(info.last, *last);
    return Status::OK();
  }

  const TempFolder folder_;
  const std::string path_ = folder_.File("00000000000000000011.log");
  const Sealing sealing_ = SealingOf("one " + std::string(64, '1'));
  uint64_t last_ = 0;
};

TEST_F(SealedLogTest, GivesBackWhatWasAddedAndTellsNothing) {
  for (const bool finish : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, finish));
    ASSERT_TRUE(IsOk(Read(path_, sealing_, &last_)));
    EXPECT_EQ(last_, 18u);
    const std::string bytes = Bytes(path_);
    EXPECT_EQ(bytes.find("the-"), std::string::npos);
    std::unique_ptr<LogFileReader> reader;
    ASSERT_TRUE(IsOk(LogFileReader::Open(path_, sealing_, &reader)));
    EXPECT_EQ(reader->info().finished, finish);
    EXPECT_EQ(reader->info().key_id, "one");
    ArchivedBatch batch;
    bool end = false;
    for (uint64_t n = 11; n <= 18; ++n) {
      ASSERT_TRUE(IsOk(reader->Next(&batch, &end)));
      ASSERT_FALSE(end);
      EXPECT_EQ(batch.sequence, n);
    }
    ASSERT_TRUE(IsOk(reader->Next(&batch, &end)));
    EXPECT_TRUE(end);
  }
  // The search finds what is there.
  const std::string plain = folder_.File("00000000000000000013.log");
  std::unique_ptr<LogFileWriter> writer;
  ASSERT_TRUE(IsOk(LogFileWriter::Create(plain, kLogDatabase, 10, {}, &writer)));
  ASSERT_NO_FATAL_FAILURE(Add(writer.get(), 11, 18));
  EXPECT_NE(Bytes(plain).find("the-value-12"), std::string::npos);
}

TEST_F(SealedLogTest, LargeBatchesHavePiecesOfTheirOwn) {
  std::unique_ptr<LogFileWriter> writer;
  ASSERT_TRUE(IsOk(LogFileWriter::Create(path_, kLogDatabase, 0, sealing_, &writer)));
  const std::vector<size_t> sizes = {100, 3 << 20, 100, 700 << 10, 700 << 10, 12 << 20, 1};
  uint64_t sequence = 0;
  for (const size_t size : sizes) writer->Add(Batch(++sequence, std::string(size, 'v')), 1);
  ASSERT_TRUE(IsOk(writer->Sync()));
  ASSERT_TRUE(IsOk(writer->Finish()));
  LogReadAhead log({writer->info()}, sealing_, 2);
  uint64_t found = 0;
  for (;;) {
    const std::vector<ArchivedBatch>* batches = nullptr;
    ASSERT_TRUE(IsOk(log.Next(&batches)));
    if (batches == nullptr) break;
    for (const ArchivedBatch& batch : *batches) {
      const std::string value(sizes[found++], 'v');
      EXPECT_TRUE(batch.bytes.ToString() == Batch(found, value));
    }
  }
  EXPECT_EQ(found, sizes.size());
}

TEST_F(SealedLogTest, EveryFlippedByteIsFoundOrATail) {
  for (const bool finish : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, finish));
    const std::string right = Bytes(path_);
    const size_t records_end = right.size() - (finish ? 4 + 32 + 40 + 16 : 0);
    for (size_t i = 0; i < right.size(); ++i) {
      SCOPED_TRACE(std::to_string(i) + " of " + std::to_string(right.size()));
      std::string wrong = right;
      wrong[i] = static_cast<char>(wrong[i] ^ 1 << i % 8);
      Put(path_, wrong);
      const Status status = Read(path_, sealing_, &last_);
      if (i < kLogSealEnd || (finish && i < records_end)) {
        EXPECT_TRUE(status.IsCorruption()) << status.ToString();
        EXPECT_NE(status.ToString().find(path_), std::string::npos) << status.ToString();
        continue;
      }
      // The end of a file of which nothing tells that it is finished: what is behind is no piece.
      ASSERT_TRUE(IsOk(status));
      if (finish) {
        EXPECT_EQ(last_, 18u);
      } else {
        EXPECT_LT(last_, 18u);
      }
    }
  }
}

TEST_F(SealedLogTest, WhereverItIsCutItIsATailOfWholePieces) {
  ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, true));
  const std::string right = Bytes(path_);
  uint64_t before = 10;
  for (size_t size = kLogSealEnd; size < right.size(); ++size) {
    Put(path_, right.substr(0, size));
    ASSERT_TRUE(IsOk(Read(path_, sealing_, &last_)));
    EXPECT_TRUE(last_ == before || last_ == before + 2) << last_;
    before = last_;
    if (size % 7 != 0) continue;
    // It is finished as it is, and then nothing may be missing.
    LogFileInfo info;
    ASSERT_TRUE(IsOk(FinishLogFile(path_, sealing_, &info)));
    EXPECT_EQ(info.last, last_);
    ASSERT_TRUE(IsOk(Read(path_, sealing_, &last_)));
    EXPECT_EQ(info.last, last_);
  }
  EXPECT_EQ(before, 18u);
  for (size_t size = 0; size < kLogSealEnd; ++size) {
    Put(path_, right.substr(0, size));
    EXPECT_TRUE(IsFailure(Read(path_, sealing_, &last_), Code::kCorruption, path_)) << size;
  }
}

TEST_F(SealedLogTest, PiecesAndFilesThatAreExchangedAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, true));
  const std::string right = Bytes(path_);
  const size_t piece = 4 + DecodeFixed32(right.data() + kLogSealEnd) + 16;
  const auto piece_at = [&](size_t n) { return right.substr(kLogSealEnd + n * piece, piece); };
  const std::string head = right.substr(0, kLogSealEnd);
  const std::string rest = right.substr(kLogSealEnd + 2 * piece);
  for (const std::string& wrong :
       {head + piece_at(1) + piece_at(0) + rest, head + piece_at(0) + piece_at(0) + rest,
        head + piece_at(1) + rest, head + piece_at(0) + rest,
        head + piece_at(0) + piece_at(1) + piece_at(1) + rest}) {
    Put(path_, wrong);
    const Status status = Read(path_, sealing_, &last_);
    // Moved, the end is none either: then it is a file that ends before what was moved.
    EXPECT_TRUE(wrong.size() == right.size() ? status.IsCorruption() : status.ok())
        << status.ToString();
    EXPECT_LE(last_, 14u);
  }
  // Another file of this archive, the same one of another archive, and one that is not sealed.
  const std::string other = folder_.File("00000000000000000012.log");
  Put(other, right);
  EXPECT_TRUE(IsFailure(Read(other, sealing_, &last_), Code::kInvalidArgument, other));
  Put(path_, right);
  const Sealing elsewhere = SealingOf("one " + std::string(64, '1'), "another archive");
  EXPECT_TRUE(IsFailure(Read(path_, elsewhere, &last_), Code::kInvalidArgument, path_));
  // The pieces of one with the header of another one of the same name.
  ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, true));
  Put(path_, head + Bytes(path_).substr(kLogSealEnd));
  ASSERT_TRUE(IsOk(Read(path_, sealing_, &last_)));
  EXPECT_EQ(last_, 10u) << "nothing of it opens";
}

TEST_F(SealedLogTest, AMissingOrWrongKeyIsNoTail) {
  ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, false));
  const std::string right = Bytes(path_);
  const struct {
    Sealing sealing;
    std::string culprit;
  } cases[] = {{{.keys = nullptr, .context = "archive"}, "no key file"},
               {SealingOf("two " + std::string(64, '1')), "'one'"},
               {SealingOf("one " + std::string(64, '2')), "'one'"}};
  for (const auto& [sealing, culprit] : cases) {
    EXPECT_TRUE(IsFailure(Read(path_, sealing, &last_), Code::kInvalidArgument, culprit));
    EXPECT_TRUE(IsFailure(Read(path_, sealing, &last_), Code::kInvalidArgument, path_));
    LogFileInfo info;
    EXPECT_TRUE(IsFailure(FinishLogFile(path_, sealing, &info), Code::kInvalidArgument, culprit));
    EXPECT_TRUE(Bytes(path_) == right) << "a file that cannot be read was changed";
  }
}

TEST_F(SealedLogTest, NoKeySealsTwiceInOnePlace) {
  // A writer dies within a piece; the next one finishes the file in that place. What the disk had
  // before and has then is sealed with different keys: the file's own does not open the end.
  ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, false));
  const std::string torn = Bytes(path_).substr(0, Bytes(path_).size() - 1);
  std::set<std::string> ends;
  for (int i = 0; i < 10; ++i) {
    Put(path_, torn);
    LogFileInfo info;
    ASSERT_TRUE(IsOk(FinishLogFile(path_, sealing_, &info)));
    EXPECT_EQ(info.last, 16u);
    // The same end in the same place, each time as other bytes.
    const std::string end = Bytes(path_).substr(info.bytes + 4 + 32);
    EXPECT_EQ(end.size(), 40u + 16);
    for (const std::string& other : ends) {
      size_t same = 0;
      for (size_t at = 0; at < end.size(); ++at) same += end[at] == other[at] ? 1 : 0;
      EXPECT_LT(same, 10u);
    }
    EXPECT_TRUE(ends.insert(end).second);
  }
  // A file that is begun anew has another key, too.
  std::set<std::string> pieces;
  for (int i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(Make(path_, sealing_, false));
    EXPECT_TRUE(pieces.insert(Bytes(path_).substr(kLogSealEnd + 4, 32)).second);
  }
}

TEST_F(SealedLogTest, AWriterThatFailedWritesNothingMore) {
  std::unique_ptr<LogFileWriter> writer;
  ASSERT_TRUE(IsOk(LogFileWriter::Create(path_, kLogDatabase, 10, sealing_, &writer)));
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{.rlim_cur = kLogSealEnd + 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  writer->Add(Batch(11, Value(11)), 1);
  const Status full = writer->Sync();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(IsFailure(full, Code::kIOError, path_));
  const std::string torn = Bytes(path_);
  EXPECT_GT(torn.size(), kLogSealEnd);
  // What is added now would be sealed in the place of what was.
  writer->Add(Batch(11, "another value"), 1);
  EXPECT_TRUE(IsFailure(writer->Sync(), Code::kIOError, "earlier"));
  EXPECT_TRUE(IsFailure(writer->Finish(), Code::kIOError, "earlier"));
  EXPECT_TRUE(Bytes(path_) == torn);
}

TEST_F(SealedLogTest, OnlyAFileThatIsNoLongerThanAHeaderMayBeHalfMade) {
  std::unique_ptr<ArchiveFolder> folder;
  const std::string dir = folder_.File("archive");
  ASSERT_TRUE(IsOk(ArchiveFolder::Open(dir, "db", kLogDatabase, sealing_.keys, &folder)));
  std::unique_ptr<LogFileWriter> writer;
  ASSERT_TRUE(IsOk(folder->NewFile(10, sealing_.keys, &writer)));
  ASSERT_NO_FATAL_FAILURE(Add(writer.get(), 11, 12));
  const std::string path = writer->info().path;
  writer.reset();
  folder.reset();
  const std::string right = Bytes(path);
  std::string wrong = right;
  wrong[20] ^= 1;
  Put(path, wrong);
  EXPECT_TRUE(IsFailure(ArchiveFolder::Open(dir, "db", kLogDatabase, sealing_.keys, &folder),
                        Code::kCorruption, path));
  EXPECT_TRUE(Bytes(path) == wrong) << "a file with batches was removed";
  Put(path, right.substr(0, kLogSealEnd - 1));
  ASSERT_TRUE(IsOk(ArchiveFolder::Open(dir, "db", kLogDatabase, sealing_.keys, &folder)));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(folder->files().empty());
}

}  // namespace
}  // namespace nacre
