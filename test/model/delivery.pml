/* How an event becomes a post. A d_step is one statement of SQL, or one call to Temporal. README.md explains it. */
#ifndef D
#define D 1
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef PAUSES
#define PAUSES 0
#endif
#ifndef PEOPLE
#define PEOPLE 0   /* retry now / redeliver / cancel */
#endif
#ifndef RELAYS
#define RELAYS 1
#endif
#define N 2        /* attempts of the schedule */
#define L 1        /* repeats of a lost last attempt */
#define RUNS 14
#ifdef SHORT_UNTIL
#define MOST 3
#else
#define MOST 99
#endif
mtype:st = { queued, running, delivered, exhausted, cancelled };
mtype:ph = { absent, ask, timer, ended, stuck };
mtype:an = { none, accepted, rejected, internal, stop, waits, noreply };

typedef Delivery {
  bool exists; mtype:st state = queued; byte rn; byte failures; bool due;
  /* slot row */
  bool slot; byte slot_run; bool admitted; byte creator; bool expired; bool last;
  /* for properties */
  byte posting; byte posts; byte requested; byte settled; bool was2xx;
  /* the workflow: one per id */
  mtype:ph phase = absent; byte own_run; byte holder; byte starting;
}
Delivery d[D];
bool paused; byte faults = FAULTS; byte pauses = PAUSES; byte people = PEOPLE;

#if D == 1
#define HELD (d[0].slot)
#define POSTING (d[0].posting)
#else
#define HELD (d[0].slot + d[1].slot)
#define POSTING (d[0].posting + d[1].posting)
#endif
#define OPEN(i) (d[i].state == queued || d[i].state == running)

inline free_slot(i) {
  d[i].slot = 0; d[i].admitted = 0; d[i].creator = 0; d[i].expired = 0; d[i].slot_run = 0; d[i].last = 0 }
inline settle(i, s) {
  d[i].state = s; d[i].settled++; d[i].due = 0;
  assert(d[i].settled <= d[i].requested);
  assert(s != delivered || d[i].was2xx)
}

proctype Platform(byte i) { d_step { d[i].exists = 1; d[i].due = 1; d[i].requested = 1 } }

proctype Relay(byte i) {
  byte r;
end_i:
  if
  :: d_step { d[i].exists && !paused && d[i].state == queued && d[i].due && !d[i].slot &&
       HELD < SLOTS && d[i].rn < MOST ->
    d[i].rn++; assert(d[i].rn < RUNS); d[i].state = running;
    d[i].slot = 1; d[i].slot_run = d[i].rn; d[i].admitted = 0; d[i].expired = 0; r = d[i].rn; d[i].starting++ }
  fi;
  if
  /* start, terminates what runs */
  :: d_step { true -> d[i].starting--; d[i].phase = ask; d[i].own_run = r; d[i].holder = 0; r = 0 }
  /* dies, or Temporal is unavailable */
  :: d_step { faults > 0 -> faults--; d[i].starting--; r = 0 }
  fi;
  goto end_i
}

/* a worker dies: Temporal repeats a local activity, or reports the failure of a remote one */
inline die(i) {
  if
  :: d[i].holder == me -> d[i].holder = 0;
     if :: d[i].phase == ask && lucky -> skip :: d[i].phase == ask && !lucky -> d[i].phase = timer :: else fi
  :: else
  fi;
  r = 0; last = 0; reply = none
}
proctype Worker(byte i; byte me) {
  byte r; bool last; bool lucky; mtype:an reply = none;
end_w:
  if
  :: d_step { d[i].phase == ask && d[i].holder == 0 -> d[i].holder = me; r = d[i].own_run }
  fi;
  if :: lucky = 0 :: lucky = 1 fi;
  if
  :: d_step { true -> /* admit */
      if
#ifdef NO_FENCE
      :: !OPEN(i) -> reply = stop
#else
      :: !OPEN(i) || d[i].rn != r -> reply = stop
#endif
      :: else ->
        if
        :: d[i].slot && d[i].admitted -> reply = waits
        :: !(d[i].slot && d[i].admitted) && paused -> reply = stop;
           d[i].state = queued; d[i].due = 1;
           if :: d[i].slot -> free_slot(i) :: else fi
        :: !(d[i].slot && d[i].admitted) && !paused && !d[i].slot && !d[i].due -> reply = waits
        :: !(d[i].slot && d[i].admitted) && !paused && !d[i].slot && d[i].due && HELD >= SLOTS ->
           reply = stop; d[i].state = queued
        :: else ->
           d[i].state = running; d[i].slot = 1; d[i].slot_run = d[i].rn; d[i].admitted = 1; d[i].creator = me;
           d[i].expired = 0; d[i].due = 0; d[i].last = (d[i].failures >= N - 1); last = d[i].last;
           d[i].posting++; d[i].posts++;
           assert(d[i].posting == 1); assert(POSTING <= SLOTS); assert(d[i].posts <= N + L)
        fi
      fi }
  :: d_step { faults > 0 -> faults--; reply = noreply }
  :: d_step { faults > 0 -> faults--; die(i) }; goto end_w
  fi;
  if
  :: reply != none -> goto report
  :: else
  fi;
  if
  :: d_step { true -> d[i].posting--; reply = accepted }
  :: d_step { true -> d[i].posting--; reply = rejected }
  :: d_step { faults > 0 -> faults--; d[i].posting--; d[i].posts--; reply = internal }
  :: d_step { faults > 0 -> faults--; d[i].posting--; if :: d[i].creator == me -> d[i].creator = 0 :: else fi; die(i) };
       goto end_w
  fi;
  if
  :: d_step { true -> /* outcome */
      if
      :: reply == accepted -> d[i].was2xx = 1;
         if :: d[i].slot && d[i].creator == me -> free_slot(i) :: else fi;
         if
         :: OPEN(i) -> settle(i, delivered)
         :: d[i].state == exhausted -> d[i].state = delivered
         :: else
         fi
      :: reply != accepted && d[i].slot && d[i].creator == me ->
         free_slot(i);
         if
         :: d[i].state == running && d[i].rn == r ->
            if
            :: reply == rejected -> d[i].failures++;
               if :: d[i].failures >= N -> settle(i, exhausted); reply = stop :: else -> reply = waits fi
            :: else -> reply = waits
            fi
         /* asked for meanwhile */
         :: d[i].state == queued && d[i].rn == r && reply == rejected -> d[i].failures++; reply = stop
         :: else -> reply = stop
         fi
      :: else -> reply = waits /* closed as lost meanwhile */
      fi }
  :: d_step { faults > 0 -> faults--; reply = noreply; if :: d[i].creator == me -> d[i].creator = 0 :: else fi }
  :: d_step { faults > 0 -> faults--; if :: d[i].creator == me -> d[i].creator = 0 :: else fi; die(i) }; goto end_w
  fi;
report:
  if
  :: d_step { true ->
    if
    :: d[i].phase == ask && d[i].holder == me && d[i].own_run == r ->
       d[i].holder = 0;
       if
       :: reply == accepted || reply == stop -> d[i].phase = ended
       :: else -> d[i].phase = timer
       fi
    :: else /* terminated, or given to another */
    fi;
    r = 0; last = 0; reply = none }
  fi;
  goto end_w
}

proctype Timer(byte i) { end_t: do :: d_step { d[i].phase == timer -> d[i].phase = ask; d[i].holder = 0 } od }
proctype Clock(byte i) {
end_c: do
  :: d_step { OPEN(i) && d[i].exists && !d[i].due && !d[i].slot -> d[i].due = 1 }
#ifdef SHORT_UNTIL
  :: d_step { d[i].slot && !d[i].expired -> d[i].expired = 1 }
#else
  /* the slot is not used any more: its time passes */
  :: d_step { d[i].slot && !d[i].expired && d[i].posting == 0 && (d[i].admitted -> d[i].creator == 0 :
      (d[i].starting == 0 && !(d[i].phase == ask && d[i].own_run == d[i].slot_run))) -> d[i].expired = 1 }
  /* a process is late: that is a fault */
  :: d_step { faults > 0 && d[i].slot && !d[i].expired && d[i].posting == 0 -> faults--; d[i].expired = 1 }
#endif
  od }
proctype Repair(byte i) {
end_e: do
#ifdef NO_REPAIR
  :: false
#else
  :: d_step { d[i].slot && d[i].expired ->
      if
      :: d[i].state == running && d[i].rn == d[i].slot_run ->
         if
         :: d[i].admitted -> 
#ifndef LOST_NOT_COUNTED
            d[i].failures++;
#endif
            if
            :: d[i].failures >= N + L -> settle(i, exhausted)
            :: else -> d[i].state = queued; d[i].due = 0
            fi
         :: else -> d[i].state = queued; d[i].due = 1
         fi
      :: else
      fi;
      free_slot(i) }
  :: d_step { d[i].state == running && !d[i].slot && d[i].due &&
       !((d[i].phase == ask || d[i].phase == timer) && d[i].own_run == d[i].rn) -> d[i].state = queued }
  :: d_step { faults > 0 && d[i].state == running && !d[i].slot && d[i].due -> faults--; d[i].state = queued }
#endif
  od }
proctype Faults(byte i) {
end_f: do
  :: d_step { faults > 0 && (d[i].phase == ask || d[i].phase == timer) -> faults--; d[i].phase = stuck;
       d[i].holder = 0 }
  :: d_step { faults > 0 && d[i].phase != absent -> faults--; d[i].phase = absent; d[i].holder = 0 }  /* store lost */
  :: d_step { faults > 0 && d[i].phase == ask && d[i].holder != 0 -> faults--; d[i].holder = 0 }      /* given twice */
  :: d_step { faults > 0 && d[i].slot && !d[i].admitted && d[i].slot_run == d[i].rn && d[i].state == running ->
       /* the claim's commit is lost */
       faults--; free_slot(i); d[i].rn--; d[i].state = queued; d[i].due = 1 }
  od }
#if PAUSES > 0
proctype Webhook() {
  end_p: do
  :: d_step { pauses > 0 && !paused -> paused = 1; pauses-- }
  :: d_step { paused -> paused = 0 }
  :: d_step { paused && d[0].state == running && !d[0].slot -> d[0].state = queued; d[0].due = 1 } /* the pass */
  od }
#endif
#if PEOPLE > 0
proctype Person() {
  end_q: do
  :: d_step { people > 0 && d[0].exists && OPEN(0) && !(d[0].slot) -> people--; d[0].state = queued; d[0].due = 1 }
  :: d_step { people > 0 && (d[0].state == delivered || d[0].state == exhausted) ->
       people--; d[0].state = queued; d[0].due = 1; d[0].failures = 0; d[0].requested++; d[0].posts = 0 + d[0].posting }
  :: d_step { people > 0 && d[0].exists && OPEN(0) -> people--; d[0].state = cancelled; d[0].settled++; d[0].due = 0 }
  od }
#endif
proctype Judge() { /* when nothing more can happen, all is settled or paused */
  timeout -> assert(paused || (!OPEN(0)
#if D > 1
    && !OPEN(1)
#endif
  )); assert(!HELD)
}
init { byte i; atomic {
  i = 0;
  do
  :: i < D -> run Platform(i); run Relay(i);
#if RELAYS > 1
     run Relay(i);
#endif
     run Worker(i, 1);
#ifndef ONE_WORKER
     run Worker(i, 2);
#endif
     run Timer(i); run Clock(i); run Repair(i); run Faults(i); i++
  :: else -> break
  od;
#if PAUSES > 0
  run Webhook();
#endif
#if PEOPLE > 0
  run Person();
#endif
#ifndef LIVENESS
  run Judge()
#endif
} }
#ifdef LIVENESS
ltl settles { []<>(paused || (d[0].exists && !OPEN(0))) }
#endif
