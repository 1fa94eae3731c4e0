package pullet_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"pullet"
)

func Example() {
	c, err := pullet.Open("../../tests/golden/one.snap") // in a service: pullet.Open("web")
	if errors.Is(err, pullet.ErrNotPublished) {
		log.Fatal("the agent has not published anything yet: ", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(c.String("only", "a fallback"), c.Duration("timeout", 10*time.Second))
	// Output: value 10s
}

// Follow a config: a goroutine waits, the others read.
func ExampleConfig_Wait() {
	c, err := pullet.Open("web", pullet.WaitFirst)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			if err := c.Wait(context.Background()); err != nil {
				log.Print(err) // the version that is open stays in use
				time.Sleep(time.Second)
				continue
			}
			log.Printf("now at %s", c.Version())
		}
	}()
}

// Fill a struct; the values before are the defaults.
func ExampleConfig_Decode() {
	c, err := pullet.Open("../../tests/golden/one.snap")
	if err != nil {
		log.Fatal(err)
	}
	cfg := struct {
		Only    string `pullet:",required"`
		Timeout time.Duration
	}{Timeout: 10 * time.Second}
	if err := c.Decode(&cfg); err != nil {
		log.Fatal(err) // nothing was changed
	}
	fmt.Println(cfg.Only, cfg.Timeout)
	// Output: value 10s
}
