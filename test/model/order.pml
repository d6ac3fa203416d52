/* The order of one grant's events at one webhook. A d_step is the snapshot or the commit of one statement. */
#ifndef N
#define N 3
#endif
#ifndef PEOPLE
#define PEOPLE 0   /* redeliveries */
#endif
mtype:st = { absent, queued, blocked, settled };
mtype:st state[N] = absent;
bool requested[N];
byte people = PEOPLE;
#define OPEN(k) (state[k] == queued || state[k] == blocked)

/* at most one event is on its way that was not asked for again */
inline check_order(at, found) {
  found = 0; at = 0;
  do
  :: at < N -> if :: state[at] == queued && !requested[at] -> found++ :: else fi; at++
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

proctype Writer() { /* writers of one grant wait for each other on its row */
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
  :: d_step { state[i] == queued ->
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
  byte k, count; bool waits;
end_u: do
#ifdef NO_UNBLOCK
  :: false
#else
  :: d_step { state[i] == blocked -> find_earlier(i, N, k, waits) }
     d_step { if :: !waits && state[i] == blocked -> state[i] = queued :: else fi; waits = 0; check_order(k, count) }
#endif
  od
}
proctype Person(byte i) {
end_p: do
  :: d_step { people > 0 && (state[i] == settled || state[i] == blocked) -> people--;
       state[i] = queued; requested[i] = 1 }
  od
}
proctype Judge() { /* when nothing more can happen, nothing is blocked */
  byte k;
  timeout ->
  do
  :: k < N -> assert(state[k] == settled); k++
  :: else -> break
  od
}
init { byte i; atomic {
  run Writer(); run Judge();
  do
  :: i < N -> run Settle(i); run Unblock(i); run Person(i); i++
  :: else -> break
  od
} }
