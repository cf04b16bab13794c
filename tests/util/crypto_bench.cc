// Goal: what it costs to seal and to open pieces of files, and to derive the key of a file.
// Method: one key, as a writer has it, and pieces of the sizes that logs and tables have.

#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>

#include "util/crypto/aead.h"
#include "util/crypto/sealed_file.h"
#include "util/crypto/secret_key.h"

namespace nacre {
namespace {

void Require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

void BM_SealPiece(benchmark::State& state) {
  Aead aead{SecretKey()};
  const std::string plain(static_cast<size_t>(state.range(0)), 'p');
  std::string sealed;
  uint64_t offset = 0;
  for (auto _ : state) {
    sealed.clear();
    Require(SealPiece(&aead, ++offset, plain, &sealed));
    benchmark::DoNotOptimize(sealed.data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_OpenPiece(benchmark::State& state) {
  Aead aead{SecretKey()};
  std::string plain(static_cast<size_t>(state.range(0)), 'p');
  std::string sealed;
  Require(SealPiece(&aead, 1, plain, &sealed));
  for (auto _ : state) {
    Require(OpenPiece(&aead, 1, {sealed.data(), plain.size()}, sealed.data() + plain.size(),
                      plain.data()));
    benchmark::DoNotOptimize(plain.data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_DeriveFileKey(benchmark::State& state) {
  const std::string secret(SecretKey::kBytes, 's');
  const std::string salt(kSealSaltBytes, 't');
  SecretKey key;
  for (auto _ : state) Require(DeriveSecretKey(secret, salt, "a file of some name", &key));
}

BENCHMARK(BM_SealPiece)->Arg(128)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);
BENCHMARK(BM_OpenPiece)->Arg(128)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);
BENCHMARK(BM_DeriveFileKey);

}  // namespace
}  // namespace nacre
