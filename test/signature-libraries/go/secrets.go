package main

import (
	"errors"
	"regexp"
	"strings"
)

var (
	invisible = regexp.MustCompile(`[^\t\n\r -~]`)
	entry     = regexp.MustCompile(`^(?:([^=]+)=)?(whsec_[A-Za-z0-9+/]{32})$`)
)

// secrets has the secrets by webhook-endpoint; those of "" are for every endpoint that has none.
type secrets map[string][]string

func (all secrets) of(endpoint string) []string {
	if own, isKnown := all[endpoint]; isKnown {
		return own
	}
	return all[""]
}

// readSecrets reads WEBHOOK_SECRET: the secret of the only webhook, or <webhook-endpoint>=whsec_… for each of
// several, with spaces between. An endpoint may have two, while one is being rotated. Its errors contain no secret.
func readSecrets(text string) (secrets, error) {
	if invisible.MatchString(text) {
		return nil, errors.New("WEBHOOK_SECRET has a byte order mark or another invisible character: save it without one")
	}
	if strings.ContainsAny(text, "\"'`") {
		return nil, errors.New("WEBHOOK_SECRET has quotes: remove them")
	}
	all := secrets{}
	for _, each := range strings.Fields(text) {
		match := entry.FindStringSubmatch(each)
		if match == nil {
			return nil, errors.New("WEBHOOK_SECRET contains what is not a secret: copy all of it, from whsec_ to its end")
		}
		all[match[1]] = append(all[match[1]], match[2])
	}
	if len(all) == 0 {
		return nil, errors.New("WEBHOOK_SECRET is missing: set it to the secret shown when the webhook was created")
	}
	return all, nil
}
