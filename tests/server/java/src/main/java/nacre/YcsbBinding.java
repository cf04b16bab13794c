package nacre;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB's records as strings of a server that speaks Redis's protocol: a record has one field
 * (fieldcount=1), which is the string.
 *
 * <p>Properties: redis.port; redis.ranges, which says how a workload scans: by nacre-server's NRANGE
 * ("nrange"), or by a sorted set of all keys, which inserts keep ("zset"), as Redis has no ranges of
 * keys.
 */
public class YcsbBinding extends DB {
  private static final ProtocolCommand NRANGE = () -> SafeEncoder.encode("NRANGE");
  private static final String INDEX = "_index";

  private Jedis jedis;
  private boolean indexed;

  @Override
  public void init() throws DBException {
    String ranges = getProperties().getProperty("redis.ranges", "nrange");
    if (!ranges.equals("nrange") && !ranges.equals("zset")) {
      throw new DBException("redis.ranges is " + ranges + ", neither nrange nor zset");
    }
    if (!getProperties().getProperty("fieldcount", "10").equals("1")) {
      throw new DBException("records have one field here: fieldcount=1");
    }
    indexed = ranges.equals("zset");
    jedis = new Jedis("127.0.0.1", Integer.parseInt(getProperties().getProperty("redis.port")));
  }

  @Override
  public void cleanup() {
    jedis.close();
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      String value = jedis.get(key);
      if (value == null) {
        return Status.NOT_FOUND;
      }
      result.put("field0", new StringByteIterator(value));
      return Status.OK;
    } catch (JedisException e) {
      return Status.ERROR;
    }
  }

  @Override
  public Status scan(
      String table,
      String startkey,
      int recordcount,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try {
      List<String> values =
          indexed ? scanIndex(startkey, recordcount) : scanKeys(startkey, recordcount);
      for (String value : values) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        record.put("field0", new StringByteIterator(value));
        result.add(record);
      }
      return values.isEmpty() ? Status.NOT_FOUND : Status.OK;
    } catch (JedisException e) {
      return Status.ERROR;
    }
  }

  private List<String> scanKeys(String startkey, int recordcount) {
    List<?> answer =
        (List<?>)
            jedis.sendCommand(
                NRANGE, "[" + startkey, "+", "LIMIT", String.valueOf(recordcount), "WITHVALUES");
    List<String> values = new ArrayList<>();
    for (int i = 1; i < answer.size(); i += 2) {
      values.add(SafeEncoder.encode((byte[]) answer.get(i)));
    }
    return values;
  }

  private List<String> scanIndex(String startkey, int recordcount) {
    List<String> keys = jedis.zrangeByLex(INDEX, "[" + startkey, "+", 0, recordcount);
    return keys.isEmpty() ? List.of() : jedis.mget(keys.toArray(new String[0]));
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    try {
      jedis.set(key, values.values().iterator().next().toString());
      return Status.OK;
    } catch (JedisException e) {
      return Status.ERROR;
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      if (indexed) {
        jedis.zadd(INDEX, 0, key);
      }
    } catch (JedisException e) {
      return Status.ERROR;
    }
    return update(table, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    try {
      if (indexed) {
        jedis.zrem(INDEX, key);
      }
      return jedis.del(key) == 1 ? Status.OK : Status.NOT_FOUND;
    } catch (JedisException e) {
      return Status.ERROR;
    }
  }
}
