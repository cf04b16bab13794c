package nacre;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.JedisSentinelPool;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.SafeEncoder;

/**
 * What programs with Jedis do, against the server at the port that is the first argument, and the
 * cluster with the server at the second one.
 */
public final class JedisSmoke {
  private JedisSmoke() {}

  private static void expect(Object expected, Object found) {
    if (!expected.equals(found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  private static void channels(JedisPool pool) throws InterruptedException {
    CountDownLatch subscribed = new CountDownLatch(1);
    StringBuilder heard = new StringBuilder();
    Thread listener =
        new Thread(
            () -> {
              try (Jedis jedis = pool.getResource()) {
                jedis.subscribe(
                    new JedisPubSub() {
                      @Override
                      public void onSubscribe(String channel, int count) {
                        subscribed.countDown();
                      }

                      @Override
                      public void onMessage(String channel, String message) {
                        heard.append(message);
                        unsubscribe();
                      }
                    },
                    "news");
              }
            });
    listener.start();
    expect(true, subscribed.await(30, TimeUnit.SECONDS));
    try (Jedis jedis = pool.getResource()) {
      expect(1L, jedis.publish("news", "hello"));
    }
    listener.join(30_000);
    expect("hello", heard.toString());
  }

  /** The server tells as a sentinel would who serves the database. */
  private static void sentinel(String address) {
    try (JedisSentinelPool told = new JedisSentinelPool("redis", Set.of(address));
        Jedis jedis = told.getResource()) {
      expect("value", jedis.get("text"));
    }
  }

  /** A cluster, of which the server at the port is a part. */
  private static void cluster(int port) {
    try (JedisCluster cluster = new JedisCluster(new HostAndPort("127.0.0.1", port))) {
      for (int i = 0; i < 200; i++) expect("OK", cluster.set("key" + i, String.valueOf(i)));
      for (int i = 0; i < 200; i++) expect(String.valueOf(i), cluster.get("key" + i));
      expect(true, cluster.getClusterNodes().size() > 1);
      expect("OK", cluster.mset("{tag}a", "1", "{tag}b", "5"));
      expect(List.of("1", "5"), cluster.mget("{tag}a", "{tag}b"));
      expect(6L, cluster.eval("return redis.call('incrby', KEYS[1], 5)", 1, "{tag}a"));
    }
  }

  public static void main(String[] args) throws InterruptedException {
    if (args.length > 1) cluster(Integer.parseInt(args[1]));
    try (JedisPool pool = new JedisPool("127.0.0.1", Integer.parseInt(args[0]));
        Jedis jedis = pool.getResource()) {
      expect("PONG", jedis.ping());
      expect("OK", jedis.setex("text", 100, "value"));
      expect("value", jedis.get("text"));
      expect(true, jedis.ttl("text") > 90);
      jedis.hset("hash", Map.of("a", "1", "b", "2"));
      expect(Map.of("a", "1", "b", "2"), jedis.hgetAll("hash"));
      jedis.zadd("scores", Map.of("x", 1.5, "y", -2.0));
      expect(List.of("y", "x"), jedis.zrange("scores", 0, -1));
      Pipeline pipeline = jedis.pipelined();
      List<Response<Long>> counts =
          List.of(pipeline.incr("counter"), pipeline.incr("counter"), pipeline.incrBy("counter", 5));
      pipeline.sync();
      expect(7L, counts.get(2).get());
      Transaction transaction = jedis.multi();
      transaction.rpush("list", "a", "b");
      Response<List<String>> list = transaction.lrange("list", 0, -1);
      transaction.exec();
      expect(List.of("a", "b"), list.get());
      expect(List.of("list", "a"), jedis.blpop(5, "list"));
      try {
        jedis.lpush("text", "x");
        throw new AssertionError("LPUSH to a string was taken");
      } catch (JedisDataException e) {
        expect(true, e.getMessage().startsWith("WRONGTYPE"));
      }
      channels(pool);
      ProtocolCommand nrange = () -> SafeEncoder.encode("NRANGE");
      List<?> range = (List<?>) jedis.sendCommand(nrange, "[s", "+", "LIMIT", "2");
      expect(
          List.of("scores", "text"),
          range.stream().map(key -> SafeEncoder.encode((byte[]) key)).toList());
      sentinel("127.0.0.1:" + args[0]);
      System.out.println("Jedis: ok");
    }
  }
}
