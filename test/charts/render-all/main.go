// Command render-all renders charts with many sets of values in one process, as `helm template` does.
// It reads JSON objects {chart, release, namespace, values} and prints one line of JSON for each, in order: its
// error, or the numbers of its objects. Before the first use of a number it prints the object, decoded strictly from
// YAML. Most sets change few objects, so that each is checked once.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"runtime"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

type set struct {
	Chart     string         `json:"chart"`
	Release   string         `json:"release"`
	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values"`
}

// A chart with its schema, which Helm would compile for each set.
type loaded struct {
	chart  *chart.Chart
	schema *jsonschema.Schema
}

type result struct {
	objects []string
	err     error
}

func main() {
	log.SetOutput(io.Discard) // Helm's warnings about values that it replaces
	sets := read(os.Stdin)
	charts := map[string]*loaded{}
	for _, one := range sets {
		if charts[one.Chart] == nil {
			charts[one.Chart] = load(one.Chart)
		}
	}
	results := make([]result, len(sets))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for index := range next {
				objects, err := render(charts[sets[index].Chart], sets[index])
				results[index] = result{objects, err}
			}
		})
	}
	for index := range sets {
		next <- index
	}
	close(next)
	workers.Wait()
	write(results)
}

func load(folder string) *loaded {
	of, err := loader.Load(folder)
	if err != nil {
		fail(err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(of.Schema))
	if err != nil {
		fail(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("file:///values.schema.json", schema); err != nil {
		fail(err)
	}
	compiled, err := compiler.Compile("file:///values.schema.json")
	if err != nil {
		fail(err)
	}
	return &loaded{of, compiled}
}

func render(of *loaded, one set) ([]string, error) {
	options := chartutil.ReleaseOptions{Name: one.Release, Namespace: one.Namespace, Revision: 1, IsInstall: true}
	caps := chartutil.DefaultCapabilities
	values, err := chartutil.ToRenderValuesWithSchemaValidation(of.chart, one.Values, options, caps, true)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(values["Values"])
	if err != nil {
		return nil, err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := of.schema.Validate(plain); err != nil {
		return nil, fmt.Errorf("values don't meet the specifications of the schema: %w", err)
	}
	files, err := engine.Render(of.chart, values)
	if err != nil {
		return nil, err
	}
	objects := []string{}
	for name, text := range files {
		if base := path.Base(name); strings.HasPrefix(base, "_") || strings.HasSuffix(base, ".txt") {
			continue
		}
		for _, document := range releaseutil.SplitManifests(text) {
			object, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				return nil, fmt.Errorf("%s does not decode: %w", name, err)
			}
			if string(object) != "null" {
				objects = append(objects, string(object))
			}
		}
	}
	sort.Strings(objects)
	return objects, nil
}

func write(results []result) {
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	numbers := map[string]int{}
	for _, one := range results {
		if one.err != nil {
			text, _ := json.Marshal(one.err.Error())
			fmt.Fprintf(output, "{\"error\":%s}\n", text)
			continue
		}
		used := []int{}
		for _, object := range one.objects {
			number, isKnown := numbers[object]
			if !isKnown {
				number = len(numbers)
				numbers[object] = number
				fmt.Fprintf(output, "{\"object\":%s}\n", object)
			}
			used = append(used, number)
		}
		text, _ := json.Marshal(used)
		fmt.Fprintf(output, "{\"objects\":%s}\n", text)
	}
}

func read(input io.Reader) []set {
	sets := []set{}
	decoder := json.NewDecoder(input)
	for {
		var one set
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return sets
		} else if err != nil {
			fail(err)
		}
		sets = append(sets, one)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}
