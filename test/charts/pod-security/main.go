// Command pod-security reads pods as JSON, one per line, and prints what Pod Security's "restricted" level
// forbids about each, by the rules of the API server's admission.
// Exit code 1 when it forbids anything.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		fail(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pods, forbidden := 0, 0
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	for {
		var pod corev1.Pod
		if err := decoder.Decode(&pod); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fail(err)
		}
		pods++
		for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				forbidden++
				fmt.Printf("%s: %s (%s)\n", pod.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
	fmt.Printf("%d pods, %d findings\n", pods, forbidden)
	if forbidden > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
