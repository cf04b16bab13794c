// What programs with ioredis do, against the server at the port that is the first argument, and the
// cluster with the server at the second one.
const assert = require("node:assert");
const Redis = require("ioredis");

async function run(port) {
  const client = new Redis(port, "127.0.0.1");
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.set("text", "value", "EX", 100), "OK");
  assert.equal(await client.get("text"), "value");
  assert.ok((await client.ttl("text")) > 90);
  await client.hset("hash", { a: 1, b: 2 });
  assert.deepEqual(await client.hgetall("hash"), { a: "1", b: "2" });
  await client.zadd("scores", 1.5, "x", -2, "y");
  assert.deepEqual(await client.zrange("scores", 0, -1, "WITHSCORES"), ["y", "-2", "x", "1.5"]);
  const counts = await client.pipeline().incr("counter").incrby("counter", 5).exec();
  assert.deepEqual(counts, [[null, 1], [null, 6]]);
  const done = await client.multi().rpush("list", "a", "b").lrange("list", 0, -1).exec();
  assert.deepEqual(done, [[null, 2], [null, ["a", "b"]]]);
  assert.deepEqual(await client.blpop("list", 5), ["list", "a"]);
  await assert.rejects(client.lpush("text", "x"), /WRONGTYPE/);
  const listener = new Redis(port, "127.0.0.1");
  const heard = new Promise((resolve) => listener.on("message", (_, text) => resolve(text)));
  await listener.subscribe("news");
  await client.publish("news", "hello");
  assert.equal(await heard, "hello");
  listener.disconnect();
  const keys = [];
  for await (const some of client.scanStream({ count: 2 })) keys.push(...some);
  assert.equal(keys.length, 5);
  assert.deepEqual(await client.call("NRANGE", "[s", "+", "LIMIT", 2), ["scores", "text"]);
  client.disconnect();
  // The server tells as a sentinel would who serves the database.
  const found = new Redis({ sentinels: [{ host: "127.0.0.1", port }], name: "redis" });
  assert.equal(await found.get("text"), "value");
  found.disconnect();
}

// A cluster, of which the server at the port is a part.
async function cluster(port) {
  const client = new Redis.Cluster([{ host: "127.0.0.1", port }]);
  for (let i = 0; i < 200; i++) assert.equal(await client.set(`key${i}`, i), "OK");
  for (let i = 0; i < 200; i++) assert.equal(await client.get(`key${i}`), String(i));
  const servers = client.nodes("master");
  assert.ok(servers.length > 1);
  const counts = await Promise.all(servers.map((server) => server.dbsize()));
  assert.equal(counts.reduce((sum, count) => sum + count), 200);
  const done = await client.multi().incr("{tag}a").incrby("{tag}b", 5).exec();
  assert.deepEqual(done, [[null, 1], [null, 5]]);
  assert.deepEqual(await client.mget("{tag}a", "{tag}b"), ["1", "5"]);
  await assert.rejects(client.mget("key1", "key2"), /CROSSSLOT/);
  client.disconnect();
}

run(Number(process.argv[2])).then(() => process.argv[3] && cluster(Number(process.argv[3]))).then(
  () => console.log("ioredis: ok"),
  (error) => {
    console.error("ioredis:", error);
    process.exit(1);
  });
