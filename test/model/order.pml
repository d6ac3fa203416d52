/* The order of one subject's events at one webhook. A d_step is the snapshot or the commit of one statement. */
#define N 3
#ifndef PEOPLE
#define PEOPLE 0   /* redeliveries */
#endif
#ifndef REMOVALS
#define REMOVALS 0 /* events whose type is removed from the webhook; such a one may stay open for ever */
#endif
mtype:st = { absent, queued, blocked, settled };
mtype:st state[N] = absent;
bool requested[N], removed[N];
byte people = PEOPLE, removals = REMOVALS;
#ifdef NO_REMOVED
#define OPEN(k) (state[k] == queued || state[k] == blocked)
#else
#define OPEN(k) ((state[k] == queued || state[k] == blocked) && !removed[k])
#endif
#define EARLIER(k) (k > 0 && OPEN(0) || k > 1 && OPEN(1))   /* of N = 3 */

/* at most one event is on its way, beside those that were asked for again and those of a removed type */
inline check_order(at, found) {
  found = 0; at = 0;
  do
  :: at < N -> if :: state[at] == queued && !requested[at] && !removed[at] -> found++ :: else fi; at++
  :: else -> break
  od;
  assert(found <= 1); found = 0; at = 0
}
/* whether an event before `which` is open, besides `except` */
inline find_earlier(which, except, at, found) {
  found = 0; at = 0;
  do
  :: at < which -> if :: at != except && OPEN(at) -> found = 1 :: else fi; at++
  :: else -> break
  od;
  at = 0
}

proctype Writer() { /* writers of one subject wait for each other on its row */
  byte i, k, count; bool waits;
  do
  :: i < N ->
     d_step { find_earlier(i, N, k, waits) }
#ifdef NO_ORDER
     waits = 0;
#endif
     d_step { if :: waits -> state[i] = blocked :: else -> state[i] = queued fi; i++; waits = 0; check_order(k, count) }
  :: else -> break
  od
}
proctype Settle(byte i) { /* the outcome, the expiry or the cancellation that ends an event */
  byte k, j, count, next = N; bool waits;
end_s: do
  :: d_step { state[i] == queued && !removed[i] ->
       next = N; j = 0;
       do
       :: j < N && next == N -> if :: state[j] == blocked -> next = j :: else fi; j++
       :: else -> break
       od;
       j = 0;
       if :: next < N -> find_earlier(next, i, k, waits); if :: waits -> next = N :: else fi; waits = 0 :: else fi }
     d_step { state[i] = settled;
       if :: next < N && state[next] == blocked -> state[next] = queued :: else fi;
       next = N; check_order(k, count) }
  od
}
proctype Unblock(byte i) {
  byte k, count;
end_u: do
#ifdef NO_UNBLOCK
  :: false
#else
  :: state[i] == blocked && !EARLIER(i) ->  /* a look that finds an earlier one changes nothing */
     d_step { if :: state[i] == blocked -> state[i] = queued :: else fi; check_order(k, count) }
#endif
  od
}
proctype Person(byte i) {
end_p: do
  :: d_step { people > 0 && (state[i] == settled || state[i] == blocked) -> people--;
       state[i] = queued; requested[i] = 1 }
  od
}
proctype Removal(byte i) {
end_r: do
  :: d_step { removals > 0 && state[i] != absent && !removed[i] -> removals--; removed[i] = 1 }
  od
}
proctype Judge() { /* when nothing more can happen, nothing is blocked */
  byte k;
  timeout ->
  do
  :: k < N -> assert(state[k] == settled || removed[k]); k++
  :: else -> break
  od
}
init { byte i; atomic {
  run Writer(); run Judge();
  do
  :: i < N -> run Settle(i); run Unblock(i); run Person(i); run Removal(i); i++
  :: else -> break
  od
} }
