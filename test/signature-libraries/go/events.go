package main

import "sync"

type event struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	CreatedAt string `json:"createdAt"`
	Test      bool   `json:"test"` // absent from genuine events
	Data      struct {
		GrantID string `json:"grantId"`
		SeatID  string `json:"seatId"`
	} `json:"data"`
}

// subject is what an event is about: a seat, or else a grant. A grant has several seats, one after another.
func (e event) subject() string {
	if e.Data.SeatID != "" {
		return "seat " + e.Data.SeatID
	}
	if e.Data.GrantID != "" {
		return "grant " + e.Data.GrantID
	}
	return ""
}

type position struct {
	createdAt, endpoint string
	sequence            int64
	id                  string
}

// isLater compares two events of one subject. Each endpoint counts for itself, so sequences of two say nothing
// about each other: then the ids decide.
func (p position) isLater(last position) bool {
	if p.createdAt != last.createdAt {
		return p.createdAt > last.createdAt
	}
	if p.endpoint == last.endpoint && p.sequence != last.sequence {
		return p.sequence > last.sequence
	}
	return p.id > last.id
}

// events decides which events to apply: none twice, and of one seat or grant none that is earlier than the last
// one. It is in memory for the example. In production, use two tables, one with the event's id as its key and one
// with the subject's, and write them in the transaction that does the work.
type events struct {
	mutex  sync.Mutex
	seen   map[string]bool
	latest map[string]position
}

func (all *events) isDue(received event, endpoint string, sequence int64) bool {
	// A test event is accepted like any other and never acted on: the ids in its data name nothing.
	if received.Test {
		return false
	}
	all.mutex.Lock()
	defer all.mutex.Unlock()
	if all.seen[received.ID] {
		return false
	}
	all.seen[received.ID] = true
	subject := received.subject()
	if subject == "" {
		return true
	}
	own := position{received.CreatedAt, endpoint, sequence, received.ID}
	if last, isKnown := all.latest[subject]; isKnown && !own.isLater(last) {
		return false
	}
	all.latest[subject] = own
	return true
}
