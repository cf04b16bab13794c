// What programs with go-redis do, against the server at the port that is the argument.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
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

func main() {
	ctx := context.Background()
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
