// Goal: what crosses the wire is decoded exactly, and nothing malformed gets through. Method:
// round trips, and every truncation and single-byte change of the encodings.

#include "pool/wire/protocol.h"

#include <gtest/gtest.h>

#include <string>

#include "jobs/job_codec.h"
#include "pool/wire/control.pb.h"
#include "tests/support/seed.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

TEST(ProtocolTest, HelloAndWelcome) {
  Hello hello;
  hello.kind = ConnectionKind::kRequest;
  hello.client_id = 0x1122334455667788;
  hello.slab_bytes = 64 << 20;
  hello.instance_id = 99;
  const std::string bytes = hello.Encode();
  ASSERT_EQ(bytes.size(), Hello::kBytes);
  Hello decoded;
  ASSERT_TRUE(Hello::Decode(bytes, &decoded));
  EXPECT_EQ(decoded.kind, hello.kind);
  EXPECT_EQ(decoded.client_id, hello.client_id);
  EXPECT_EQ(decoded.slab_bytes, hello.slab_bytes);
  EXPECT_EQ(decoded.instance_id, hello.instance_id);
  EXPECT_EQ(decoded.connection, 0u);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(Hello::Decode(Slice(bytes.data(), n), &decoded));
  }
  // A connection for data has a number where others say what slabs they count on.
  hello.kind = ConnectionKind::kData;
  hello.connection = 0x89abcdef;
  ASSERT_TRUE(Hello::Decode(hello.Encode(), &decoded));
  EXPECT_EQ(decoded.connection, hello.connection);
  EXPECT_EQ(decoded.slab_bytes, 0u);
  std::string bad = bytes;
  bad[0] ^= 1;
  EXPECT_FALSE(Hello::Decode(bad, &decoded));
  bad = bytes;
  bad[6] = 3;
  EXPECT_FALSE(Hello::Decode(bad, &decoded));

  Welcome welcome;
  welcome.instance_id = 7;
  Welcome answer;
  ASSERT_TRUE(Welcome::Decode(welcome.Encode(), &answer));
  EXPECT_EQ(answer.instance_id, 7u);
  EXPECT_FALSE(Welcome::Decode("", &answer));
  welcome.features = 0x1122334455667788;
  welcome.features_on = 3;
  const std::string whole = welcome.Encode();
  ASSERT_EQ(whole.size(), Welcome::kBytes);
  ASSERT_TRUE(Welcome::Decode(whole, &answer));
  EXPECT_EQ(answer.version, kProtocols.newest);
  EXPECT_EQ(answer.features, welcome.features);
  EXPECT_EQ(answer.features_on, welcome.features_on);
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(Welcome::Decode(Slice(whole.data(), n), &answer)) << n;
  }
}

TEST(ProtocolTest, RefusalsNameTheirReason) {
  Hello hello;
  EXPECT_EQ(RefusalReason(hello, 1 << 20, 5, 9), "");
  hello.slab_bytes = 1 << 20;
  hello.instance_id = 5;
  EXPECT_EQ(RefusalReason(hello, 1 << 20, 5, 9), "");

  hello.range = {.oldest = 4700, .newest = 4711};
  const auto as_client = [](const std::string& reason) {
    EXPECT_LE(reason.size(), rdma::Device::kMaxReasonBytes);
    return StatusOfRefusal("shm:/n", Status::InvalidArgument(reason));
  };
  Status s = as_client(RefusalReason(hello, 1 << 20, 5, 9));
  EXPECT_TRUE(s.IsUnavailable());
  EXPECT_NE(s.ToString().find("4711"), std::string::npos);
  EXPECT_NE(s.ToString().find(ToString(kProtocols)), std::string::npos);
  EXPECT_NE(s.ToString().find("shm:/n"), std::string::npos);
  EXPECT_FALSE(IsOtherInstance(s));

  hello.range = kProtocols;
  s = as_client(RefusalReason(hello, uint64_t{1} << 40, 5, 9));
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_NE(s.ToString().find("1048576"), std::string::npos);

  s = as_client(RefusalReason(hello, 1 << 20, 6, 9));
  EXPECT_TRUE(s.IsUnavailable());
  EXPECT_TRUE(IsOtherInstance(s));
}

// Release 0.2.0 knew one version and no features. Its bytes are spelled out, as its encoder is
// gone.
TEST(ProtocolTest, WhatVersion8SaysIsUnderstoodAndSaid) {
  constexpr ProtocolRange kEarly = {8, 8};
  std::string bytes("NcrA\x08\0\x01\0\x88\x77\x66\x55\x44\x33\x22\x11", 16);
  bytes += std::string("\0\x40\0\0\0\0\0\0\x63\0\0\0\0\0\0\0", 16);
  Hello hello;
  ASSERT_TRUE(Hello::Decode(bytes, &hello));
  EXPECT_EQ(hello.range, kEarly);
  EXPECT_EQ(hello.kind, ConnectionKind::kRequest);
  EXPECT_EQ(hello.client_id, 0x1122334455667788u);
  EXPECT_EQ(hello.slab_bytes, uint64_t{64} << 20);
  EXPECT_EQ(hello.instance_id, 99u);
  EXPECT_EQ(hello.features, 0u);
  EXPECT_EQ(hello.Encode(), bytes);
  EXPECT_EQ(RefusalReason(hello, hello.slab_bytes, 99, 0), "");
  EXPECT_EQ(CommonVersion(hello.range, kProtocols), 8);

  // A node answers in 16 bytes then, and refuses what is newer by this sentence, which a client of
  // today takes as the advice that it is.
  EXPECT_EQ(Welcome{.version = 8}.Encode().size(), 16u);
  const std::string reason = RefusalReason(Hello{}, 0, 0, 0, kEarly);
  EXPECT_EQ(reason, "protocol version 8 here, 9 there");
  EXPECT_TRUE(IsFromBeforeRanges(Status::InvalidArgument(reason)));
  EXPECT_FALSE(IsFromBeforeRanges(
      Status::InvalidArgument(RefusalReason(hello, 0, 0, 0, {.oldest = 9, .newest = 10}))));
}

TEST(ProtocolTest, TheHighestCommonVersionIsSpoken) {
  EXPECT_EQ(CommonVersion({8, 9}, {9, 12}), 9);
  EXPECT_EQ(CommonVersion({9, 12}, {8, 9}), 9);
  EXPECT_EQ(CommonVersion({8, 9}, {8, 8}), 8);
  EXPECT_EQ(CommonVersion({8, 9}, {10, 12}), 0);
  Hello hello;
  hello.range = {.oldest = 10, .newest = 12};
  Hello decoded;
  ASSERT_TRUE(Hello::Decode(hello.Encode(), &decoded));
  EXPECT_EQ(decoded.range, hello.range);
  EXPECT_EQ(RefusalReason(decoded, 0, 0, 0),
            "protocol versions 8 to 9 here, versions 10 to 12 there");
}

TEST(ProtocolTest, AClientThatLacksAFeatureIsToldItsName) {
  Hello hello;
  hello.features = SetOf(Feature::kRootFeatures);
  Hello decoded;
  ASSERT_TRUE(Hello::Decode(hello.Encode(), &decoded));
  EXPECT_EQ(decoded.features, hello.features);
  EXPECT_EQ(MissingFeaturesReason(hello.features, hello.features), "");
  EXPECT_NE(MissingFeaturesReason(0, hello.features).find("root-features"), std::string::npos);
  EXPECT_LE(MissingFeaturesReason(0, UINT64_MAX).size(), rdma::Device::kMaxReasonBytes);
  EXPECT_EQ(ToString(FeatureSet{0}), "none");
  EXPECT_EQ(ToString(FeatureSet{0b10000001}), "root-features, feature 7");
}

TEST(ProtocolTest, ReplyFrames) {
  control::Reply reply;
  SetStatus(Status::NoSpace("full"), &reply);
  for (uint64_t i = 0; i < 100; ++i) reply.mutable_slabs()->add_offsets(i << 20);
  const std::string frame = EncodeReplyFrame(reply, 42);
  std::string buffer(4096 - frame.size(), 'x');
  buffer += frame;
  control::Reply decoded;
  ASSERT_TRUE(DecodeReplyFrame(buffer, 42, &decoded).ok());
  EXPECT_TRUE(GetStatus(decoded).IsNoSpace());
  EXPECT_EQ(GetStatus(decoded).message(), "full");
  EXPECT_EQ(decoded.slabs().offsets_size(), 100);

  EXPECT_TRUE(DecodeReplyFrame(buffer, 43, &decoded).IsCorruption());
  // The id itself is what the caller has seen; everything before it is under the checksum.
  for (size_t i = buffer.size() - frame.size(); i < buffer.size() - 8; ++i) {
    std::string bad = buffer;
    bad[i] ^= 0x20;
    EXPECT_TRUE(DecodeReplyFrame(bad, 42, &decoded).IsCorruption()) << i;
  }
  EXPECT_TRUE(DecodeReplyFrame(Slice(buffer.data(), 10), 42, &decoded).IsCorruption());
}

TEST(ProtocolTest, Requests) {
  control::Request request;
  EXPECT_FALSE(DecodeRequest("", &request).ok());
  EXPECT_FALSE(DecodeRequest("nonsense", &request).ok());
  request.set_id(1);
  request.mutable_ping();
  EXPECT_FALSE(DecodeRequest(request.SerializeAsString(), &request).ok());
  request.mutable_reply()->set_length(4096);
  const std::string good = request.SerializeAsString();
  EXPECT_TRUE(DecodeRequest(good, &request).ok());
  request.mutable_large()->set_length(kMaxLargeRequestBytes + 1);
  EXPECT_FALSE(DecodeRequest(request.SerializeAsString(), &request).ok());
}

CompactionJob SomeJob() {
  CompactionJob job;
  job.database_id = 77;
  job.comparator_name = "nacre.Bytewise";
  TestTableOptions options;
  options.id = 3;
  const TestTable made =
      MakeTable({{.user_key = "a", .tag = PackTag(1, ValueType::kValue), .value = "x"}}, options);
  auto table = std::make_shared<TableMeta>(*made.meta);
  table->placement.chunk_size = 1 << 18;
  table->placement.fragments = {{.start = {.offset = 8192, .node = 1}, .length = 99'000}};
  job.runs = {{table, table}, {table}};
  job.snapshots = {5, 9};
  job.deeper = {{.smallest = std::string("\0x", 2), .largest = "\xff"}};
  job.begin = "";
  job.target_table_bytes = 1 << 20;
  job.chunk_size = 1 << 18;
  job.output_level = 2;
  job.manifest_version = 12;
  job.outputs = {{.id = 8, .placement = table->placement}};
  return job;
}

TEST(ProtocolTest, CompactionJobs) {
  const CompactionJob job = SomeJob();
  control::Compact message;
  EncodeJob(job, &message);
  CompactionJob decoded;
  const Status s = DecodeJob(message, &decoded);
  ASSERT_TRUE(s.ok()) << s.ToString();
  EXPECT_EQ(decoded.database_id, 0u);  // That is in the header.
  EXPECT_EQ(decoded.comparator_name, job.comparator_name);
  ASSERT_EQ(decoded.runs.size(), 2u);
  ASSERT_EQ(decoded.runs[0].size(), 2u);
  EXPECT_EQ(decoded.runs[0][1]->id, 3u);
  EXPECT_EQ(decoded.runs[0][1]->placement.fragments, job.runs[0][0]->placement.fragments);
  EXPECT_EQ(decoded.snapshots, job.snapshots);
  ASSERT_EQ(decoded.deeper.size(), 1u);
  EXPECT_EQ(decoded.deeper[0].smallest, job.deeper[0].smallest);
  EXPECT_EQ(decoded.begin, job.begin);
  EXPECT_FALSE(decoded.end.has_value());
  EXPECT_EQ(decoded.target_table_bytes, job.target_table_bytes);
  EXPECT_EQ(decoded.chunk_size, job.chunk_size);
  EXPECT_EQ(decoded.output_level, job.output_level);
  EXPECT_EQ(decoded.manifest_version, job.manifest_version);
  ASSERT_EQ(decoded.outputs.size(), 1u);
  EXPECT_EQ(decoded.outputs[0].id, 8u);

  const auto refused = [&](auto change) {
    control::Compact bad = message;
    change(&bad);
    CompactionJob ignored;
    const Status answer = DecodeJob(bad, &ignored);
    EXPECT_TRUE(answer.IsInvalidArgument() || answer.IsCorruption() || answer.IsNotSupported())
        << answer.ToString();
  };
  refused([](control::Compact* m) { m->clear_runs(); });
  refused([](control::Compact* m) { m->set_chunk_size(0); });
  refused([](control::Compact* m) { m->set_chunk_size(uint64_t{1} << 40); });
  refused([](control::Compact* m) { m->set_target_table_bytes(0); });
  refused([](control::Compact* m) { m->add_snapshots(1); });
  refused([](control::Compact* m) { m->add_snapshots(UINT64_MAX); });
  refused([](control::Compact* m) { m->mutable_runs(0)->add_tables("junk"); });
  refused([](control::Compact* m) { m->mutable_runs(0)->mutable_tables(0)->append("x"); });
  const auto placement = [](control::Compact* m) {
    return m->mutable_outputs(0)->mutable_placement();
  };
  refused([&](control::Compact* m) { placement(m)->set_kind(5); });
  refused([&](control::Compact* m) { placement(m)->set_data(0); });
  refused([&](control::Compact* m) { placement(m)->set_data(2); });
  refused([&](control::Compact* m) { placement(m)->set_parity(300); });
  refused([&](control::Compact* m) { placement(m)->set_kind(1); });
  refused([&](control::Compact* m) { placement(m)->clear_fragments(); });
  refused([&](control::Compact* m) { placement(m)->mutable_fragments(0)->set_node(70'000); });
  refused([&](control::Compact* m) {
    placement(m)->mutable_fragments(0)->set_length(uint64_t{1} << 50);
  });
}

TEST(ProtocolTest, DamagedMessagesDecodeToErrorsOrMessages) {
  Random random(TestSeed(501));
  control::Request request;
  request.set_id(9);
  request.mutable_reply()->set_length(65536);
  EncodeJob(SomeJob(), request.mutable_compact());
  const std::string good = request.SerializeAsString();
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    if (random.OneIn(4)) bytes.resize(random.Uniform(bytes.size()));
    for (uint64_t i = random.Uniform(4); i > 0 && !bytes.empty(); --i) {
      bytes[random.Uniform(bytes.size())] = static_cast<char>(random.Next());
    }
    control::Request decoded;
    CompactionJob job;
    if (!DecodeRequest(bytes, &decoded).ok()) continue;
    if (decoded.has_compact()) DecodeJob(decoded.compact(), &job).IgnoreError();
  }
}

}  // namespace
}  // namespace nacre::pool
