// Goal: what is sealed opens as it was, and nothing else does; keys are derived as the standard
// says; a key file is read as it is meant, or refused with the line that is wrong, and a key is
// never told. Method: published vectors, every byte flipped, and files with each mistake.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "util/crypto/aead.h"
#include "util/crypto/key_ring.h"
#include "util/crypto/sealed_file.h"
#include "util/crypto/secret_key.h"

namespace nacre {
namespace {

using Code = Status::Code;

std::string Hex(const Slice& bytes) {
  std::string hex;
  for (const char c : bytes.ToStringView()) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

TEST(AeadTest, SealsAsPublishedVectorsSay) {
  // Test cases 13 and 14 of the specification of GCM.
  Aead aead{SecretKey()};
  char tag[Aead::kTagBytes];
  ASSERT_TRUE(IsOk(aead.Seal(Aead::Nonce{}, Slice(), Slice(), tag, tag)));
  EXPECT_EQ(Hex({tag, sizeof(tag)}), "530f8afbc74536b9a963b4f1c4cb738b");
  std::string text(16, '\0');
  ASSERT_TRUE(IsOk(aead.Seal(Aead::Nonce{}, Slice(), text, text.data(), tag)));
  EXPECT_EQ(Hex(text), "cea7403d4d606b6e074ec5d3baf39d18");
  EXPECT_EQ(Hex({tag, sizeof(tag)}), "d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(AeadTest, EveryFlippedBitIsFound) {
  SecretKey key;
  ASSERT_TRUE(IsOk(DrawRandomBytes(SecretKey::kBytes, key.data())));
  Aead aead(key);
  const std::string plain = "what is to be kept secret";
  const std::string associated = "what is not";
  const Aead::Nonce nonce = Aead::NonceOf(7);
  std::string sealed(plain.size() + Aead::kTagBytes, '\0');
  ASSERT_TRUE(
      IsOk(aead.Seal(nonce, associated, plain, sealed.data(), sealed.data() + plain.size())));
  std::string opened(plain.size(), '\0');
  const auto open = [&](const std::string& bytes, const std::string& with,
                        const Aead::Nonce& number) {
    return aead.Open(number, with, {bytes.data(), plain.size()}, bytes.data() + plain.size(),
                     opened.data());
  };
  ASSERT_TRUE(IsOk(open(sealed, associated, nonce)));
  EXPECT_EQ(opened, plain);
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string wrong = sealed;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ 1 << bit % 8);
    EXPECT_TRUE(IsFailure(open(wrong, associated, nonce), Code::kCorruption)) << bit;
  }
  EXPECT_TRUE(IsFailure(open(sealed, "what is not ", nonce), Code::kCorruption));
  EXPECT_TRUE(IsFailure(open(sealed, associated, Aead::NonceOf(8)), Code::kCorruption));
  Aead other{SecretKey()};
  EXPECT_TRUE(IsFailure(other.Open(nonce, associated, {sealed.data(), plain.size()},
                                   sealed.data() + plain.size(), opened.data()),
                        Code::kCorruption));
  // The same object goes on as before.
  ASSERT_TRUE(IsOk(open(sealed, associated, nonce)));
  EXPECT_EQ(opened, plain);
}

TEST(SecretKeyTest, IsDerivedAsTheStandardSays) {
  // RFC 5869, A.1 and A.3, of whose results these are the first 32 bytes.
  const std::string secret(22, '\x0b');
  std::string salt;
  for (char c = 0; c < 13; ++c) salt += c;
  std::string purpose;
  for (int c = 0xf0; c < 0xfa; ++c) purpose += static_cast<char>(c);
  SecretKey key;
  ASSERT_TRUE(IsOk(DeriveSecretKey(secret, salt, purpose, &key)));
  EXPECT_EQ(Hex(key.bytes()), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  ASSERT_TRUE(IsOk(DeriveSecretKey(secret, "", "", &key)));
  EXPECT_EQ(Hex(key.bytes()), "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
}

class KeyRingTest : public testing::Test {
 protected:
  Status Read(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
    return KeyRing::Read(path_, &ring_);
  }

  const TempFolder folder_;
  const std::string path_ = folder_.File("keys");
  const std::string one_ = std::string(63, 'a') + "1";
  const std::string two_ = std::string(60, 'B') + "0f2C";
  std::shared_ptr<const KeyRing> ring_;
};

TEST_F(KeyRingTest, TheFirstKeySealsAndAllOpen) {
  ASSERT_TRUE(IsOk(Read("# keys of the archives\n\n 2026-11\t" + two_ + " \r\nold_1.x " + one_)));
  ASSERT_EQ(ring_->keys().size(), 2u);
  EXPECT_EQ(ring_->first().id, "2026-11");
  EXPECT_EQ(Hex(ring_->first().key.bytes()), std::string(60, 'b') + "0f2c");
  ASSERT_NE(ring_->Find("old_1.x"), nullptr);
  EXPECT_EQ(Hex(ring_->Find("old_1.x")->bytes()), one_);
  EXPECT_EQ(ring_->Find("old"), nullptr);
}

TEST_F(KeyRingTest, WhatMakesNoSenseIsNamedByItsLineAndNotTold) {
  const std::string good = "good " + two_ + "\n";
  const struct {
    std::string text;
    std::string culprit;
  } cases[] = {
      {good + one_, "line 2"},
      {good + one_ + " " + one_, "line 2"},
      {"a " + one_.substr(1), "line 1"},
      {"a " + one_ + "0", "line 1"},
      {"a " + one_.substr(1) + "g", "line 1"},
      {"a " + one_ + " more", "line 1"},
      {"a/b " + one_, "line 1"},
      {good + "\n\n# x\n" + std::string(33, 'i') + " " + one_, "line 5"},
      {good + "a " + one_ + "\ngood " + one_, "'good' is there twice"},
      {"", "no key"},
      {"# a comment\n\n", "no key"},
      {std::string(1 << 20, '\n'), "longer than"},
      {std::string("\0\xff a", 4), "line 1"},
  };
  for (const auto& [text, culprit] : cases) {
    const Status status = Read(text);
    EXPECT_TRUE(IsFailure(status, Code::kInvalidArgument, culprit)) << text.substr(0, 100);
    EXPECT_TRUE(IsFailure(status, Code::kInvalidArgument, path_));
    EXPECT_EQ(status.ToString().find(std::string(20, 'a')), std::string::npos)
        << "a key is told: " << status.ToString();
  }
  EXPECT_TRUE(IsFailure(KeyRing::Read(folder_.File("missing"), &ring_), Code::kIOError, "missing"));
}

TEST_F(KeyRingTest, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0644, 0440}) {
    EXPECT_TRUE(IsFailure(Read("a " + one_, mode), Code::kInvalidArgument, "chmod 600")) << mode;
  }
  EXPECT_TRUE(IsOk(Read("a " + one_, 0400)));
}

class SealedFileTest : public testing::Test {
 protected:
  SealedFileTest() {
    auto ring = std::make_shared<KeyRing>();
    EXPECT_TRUE(IsOk(KeyRing::Parse("new " + std::string(64, '1') + "\nold " + std::string(64, '2'),
                                    ring.get())));
    sealing_ = {.keys = std::move(ring), .context = "archive 1"};
    EXPECT_TRUE(IsOk(NewFileKey(sealing_, {"log", "000.log"}, "header", &seal_, &key_)));
  }
  Status Find(const Sealing& sealing, const SealedAs& file, const std::string& header,
              const std::string& seal, bool* same) const {
    FileKey found;
    Status status = FindFileKey(sealing, file, header, seal, &found);
    *same = found.key.bytes().ToStringView() == key_.key.bytes().ToStringView();
    return status;
  }
  static std::shared_ptr<const KeyRing> Ring(const std::string& text) {
    auto ring = std::make_shared<KeyRing>();
    EXPECT_TRUE(IsOk(KeyRing::Parse(text, ring.get())));
    return ring;
  }

  Sealing sealing_;
  std::string seal_;
  FileKey key_;
};

TEST_F(SealedFileTest, EachFileHasAKeyOfItsOwn) {
  bool same = false;
  ASSERT_TRUE(IsOk(Find(sealing_, {"log", "000.log"}, "header", seal_, &same)));
  EXPECT_TRUE(same);
  EXPECT_EQ(key_.id, "new");
  std::set<std::string> keys = {key_.key.bytes().ToString()};
  for (int i = 0; i < 100; ++i) {
    FileKey key;
    std::string seal;
    ASSERT_TRUE(IsOk(NewFileKey(sealing_, {"log", "000.log"}, "header", &seal, &key)));
    EXPECT_TRUE(keys.insert(key.key.bytes().ToString()).second);
  }
  SecretKey continued;
  ASSERT_TRUE(IsOk(ContinueKey(key_.key, "salt", &continued)));
  EXPECT_TRUE(keys.insert(continued.bytes().ToString()).second);
}

TEST_F(SealedFileTest, WhatWasAnotherFileIsRefused) {
  bool same = false;
  Sealing elsewhere = sealing_;
  elsewhere.context = "archive 2";
  EXPECT_TRUE(IsFailure(Find(elsewhere, {"log", "000.log"}, "header", seal_, &same),
                        Code::kInvalidArgument, "another file"));
  for (const SealedAs& other : {SealedAs{"log", "001.log"}, SealedAs{"table", "000.log"},
                                SealedAs{"log0", "00.log"}, SealedAs{"log", ""}}) {
    EXPECT_TRUE(IsFailure(Find(sealing_, other, "header", seal_, &same), Code::kInvalidArgument,
                          "another file"));
    EXPECT_FALSE(same);
  }
}

TEST_F(SealedFileTest, AMissingKeyIsNamedAndAnotherOneIsNoticed) {
  bool same = false;
  EXPECT_TRUE(IsFailure(
      Find({.keys = nullptr, .context = "archive 1"}, {"log", "000.log"}, "header", seal_, &same),
      Code::kInvalidArgument, "'new'"));
  EXPECT_TRUE(IsFailure(Find({.keys = Ring("old " + std::string(64, '2')), .context = "archive 1"},
                             {"log", "000.log"}, "header", seal_, &same),
                        Code::kInvalidArgument, "'new'"));
  EXPECT_TRUE(IsFailure(Find({.keys = Ring("new " + std::string(64, '2')), .context = "archive 1"},
                             {"log", "000.log"}, "header", seal_, &same),
                        Code::kInvalidArgument, "'new'"));
}

TEST_F(SealedFileTest, EveryFlippedByteOfTheSealIsFound) {
  bool same = false;
  for (size_t i = 0; i < seal_.size(); ++i) {
    std::string wrong = seal_;
    wrong[i] = static_cast<char>(wrong[i] ^ 4);
    EXPECT_TRUE(
        IsFailure(Find(sealing_, {"log", "000.log"}, "header", wrong, &same), Code::kCorruption))
        << i;
  }
  EXPECT_TRUE(
      IsFailure(Find(sealing_, {"log", "000.log"}, "headex", seal_, &same), Code::kCorruption));
}

TEST_F(SealedFileTest, PiecesOpenInTheirPlaceOnly) {
  Aead aead(key_.key);
  std::string piece;
  ASSERT_TRUE(IsOk(SealPiece(&aead, 100, "some text", &piece)));
  std::string plain(9, '\0');
  const auto open = [&](uint64_t offset, size_t size) {
    return OpenPiece(&aead, offset, {piece.data(), size}, piece.data() + size, plain.data());
  };
  ASSERT_TRUE(IsOk(open(100, 9)));
  EXPECT_EQ(plain, "some text");
  EXPECT_TRUE(IsFailure(open(101, 9), Code::kCorruption, "101"));
  EXPECT_TRUE(IsFailure(open(100, 8), Code::kCorruption, "100"));
}

}  // namespace
}  // namespace nacre
