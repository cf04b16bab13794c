// What programs with go-redis do, against the server at the port that is the first argument, and
// the cluster with the server at the second one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-redis:", err)
		os.Exit(1)
	}
}

func expect(expected, found interface{}) {
	if !reflect.DeepEqual(expected, found) {
		check(fmt.Errorf("expected %v, found %v", expected, found))
	}
}

// A cluster, of which the server at the port is a part.
func cluster(ctx context.Context, port string) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}})
	defer client.Close()
	for i := 0; i < 200; i++ {
		check(client.Set(ctx, fmt.Sprint("key", i), i, 0).Err())
	}
	gets := make([]*redis.StringCmd, 200)
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range gets {
			gets[i] = pipe.Get(ctx, fmt.Sprint("key", i))
		}
		return nil
	})
	check(err)
	for i := range gets {
		expect(fmt.Sprint(i), gets[i].Val())
	}
	var keys, servers atomic.Int64
	check(client.ForEachMaster(ctx, func(ctx context.Context, server *redis.Client) error {
		servers.Add(1)
		keys.Add(server.DBSize(ctx).Val())
		return nil
	}))
	expect(int64(200), keys.Load())
	expect(true, servers.Load() > 1)
	_, err = client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, "{tag}a")
		pipe.IncrBy(ctx, "{tag}b", 5)
		return nil
	})
	check(err)
	expect([]interface{}{"1", "5"}, client.MGet(ctx, "{tag}a", "{tag}b").Val())
	channel := client.SSubscribe(ctx, "news")
	_, err = channel.Receive(ctx)
	check(err)
	check(client.SPublish(ctx, "news", "hello").Err())
	message, err := channel.ReceiveMessage(ctx)
	check(err)
	expect("hello", message.Payload)
	check(channel.Close())
}

func main() {
	ctx := context.Background()
	if len(os.Args) > 2 {
		cluster(ctx, os.Args[2])
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	defer client.Close()
	check(client.Ping(ctx).Err())
	check(client.Set(ctx, "text", "value", 100*time.Second).Err())
	expect("value", client.Get(ctx, "text").Val())
	expect(true, client.TTL(ctx, "text").Val() > 90*time.Second)
	expect(redis.Nil, client.Get(ctx, "nothing").Err())
	check(client.HSet(ctx, "hash", "a", "1", "b", "2").Err())
	expect(map[string]string{"a": "1", "b": "2"}, client.HGetAll(ctx, "hash").Val())
	check(client.ZAdd(ctx, "scores", redis.Z{Score: 1.5, Member: "x"},
		redis.Z{Score: -2, Member: "y"}).Err())
	expect([]redis.Z{{Score: -2, Member: "y"}, {Score: 1.5, Member: "x"}},
		client.ZRangeWithScores(ctx, "scores", 0, -1).Val())
	var counter *redis.IntCmd
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, "counter")
		counter = pipe.IncrBy(ctx, "counter", 5)
		return nil
	})
	check(err)
	expect(int64(6), counter.Val())
	// An optimistic transaction that another client disturbs.
	err = client.Watch(ctx, func(tx *redis.Tx) error {
		check(client.Incr(ctx, "counter").Err())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "counter", 0, 0)
			return nil
		})
		return err
	}, "counter")
	expect(true, errors.Is(err, redis.TxFailedErr))
	check(client.RPush(ctx, "list", "a", "b").Err())
	expect([]string{"list", "a"}, client.BLPop(ctx, 5*time.Second, "list").Val())
	err = client.LPush(ctx, "text", "x").Err()
	expect(true, err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"))
	channel := client.Subscribe(ctx, "news")
	_, err = channel.Receive(ctx)
	check(err)
	check(client.Publish(ctx, "news", "hello").Err())
	message, err := channel.ReceiveMessage(ctx)
	check(err)
	expect("hello", message.Payload)
	check(channel.Close())
	keys := 0
	for scan := client.Scan(ctx, 0, "*", 2).Iterator(); scan.Next(ctx); {
		keys++
	}
	expect(5, keys)
	found, err := client.Do(ctx, "NRANGE", "[s", "+", "LIMIT", 2, "WITHVALUES").Slice()
	check(err)
	expect([]interface{}{[]interface{}{"scores", nil}, []interface{}{"text", "value"}}, found)
	// The server tells as a sentinel would who serves the database.
	told := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "redis", SentinelAddrs: []string{"127.0.0.1:" + os.Args[1]}})
	expect("value", told.Get(ctx, "text").Val())
	check(told.Close())
	fmt.Println("go-redis: ok")
}
