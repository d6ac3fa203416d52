/*
 * The delivery protocol: PostgreSQL stores which deliveries are to be made, Temporal runs them, and processes die.
 * README.md maps each action to the code and lists what is left out. A d_step is one SQL statement or one call to
 * Temporal, and anything else may happen between two of them. Each switch that is not a size breaks one guarantee.
 */
#ifndef DELIVERIES
#define DELIVERIES 1 /* of one webhook: 1 or 2 */
#endif
#ifndef SLOTS
#define SLOTS 1 /* concurrency slots of the webhook */
#endif
#ifndef RELAYS
#define RELAYS 2 /* processes for each delivery */
#endif
#ifndef WORKERS
#define WORKERS 2 /* processes for each delivery */
#endif
#ifndef FAULTS
#define FAULTS 2 /* of any kind, at any time */
#endif
#ifndef PARKS
#define PARKS 0
#endif
#ifndef REDELIVERIES
#define REDELIVERIES 0
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
/* Each round has a cause; more rounds than causes are an error. There is no round 0. */
#define ROUNDS (2 + FAULTS + 2 * PARKS + REDELIVERIES + CANCELS)

mtype:delivery = { waiting, delivered, exhausted, cancelled };
mtype:workflow = { absent, first, retry, loss, timer, ended };
mtype:result = {
  none, accepted, refused, internal, begun, closed, postponed, failed, last_failed, no_reply, under_way
};

typedef Delivery {
  /* The row of `delivery`. */
  bool exists;
  mtype:delivery state = waiting;
  byte round;
  bool started;
  bool claimed; /* until its attempt is admitted: it counts as a taken slot */
  bool leased;  /* the relay's lease is unexpired */
  bool due;     /* next_attempt_at has passed */
  bool stale;   /* it was last claimed in an earlier epoch of the webhook: before that was resumed */
  /* Its attempt without an outcome, a row of `delivery_attempt`. */
  bool open;
  bool expired; /* it is older than an attempt may take */
  bool is_last; /* of the schedule */
  byte open_round;
  byte maker;   /* the worker that makes it, from 1; 0: none any more */
  byte attempted; /* rounds that have an attempt, a bit each */
  /* For the properties only; no process reads it. */
  byte requested; /* how often: by the event, and by each redelivery of a settled delivery */
  byte settled;
  byte posting; /* posts in progress */
  bool was_accepted;
  byte exhausting; /* rounds whose last attempt ended without a 2xx, a bit each */
}

typedef Workflow {
  mtype:workflow phase = absent;
  byte holder;    /* the worker that has its task, from 1 */
  bool stuck;     /* its task fails on every replay, or its activity lies in a queue without a worker */
  bool signalled; /* its cancellation was requested */
  bool timer_lost;      /* its timer was lost */
  bool aged;      /* the attempt may be in progress, so it is lost only once it has expired */
  bool refused_once; /* one attempt of the schedule's two has failed */
  bool repeated;  /* the last attempt was lost before */
}

Delivery dl[DELIVERIES];
Workflow wf[DELIVERIES * ROUNDS];
bool parked;
byte faults = FAULTS;
byte parks = PARKS;
byte redeliveries = REDELIVERIES;
byte cancels = CANCELS;

#define W(d, r) wf[(d) * ROUNDS + (r)]
#define IS_RUNNING(d, r) (W(d, r).phase != absent && W(d, r).phase != ended)
#define IS_WAITING_IN(d, r) (dl[d].exists && dl[d].state == waiting && dl[d].round == (r))
#define TAKES_SLOT(d) (dl[d].open + (dl[d].claimed && !dl[d].stale && (dl[d].started || dl[d].leased)) \
  + (dl[d].state == waiting && dl[d].started && !dl[d].stale && !dl[d].claimed && !dl[d].open && dl[d].due))
#define IS_SETTLED(d) (dl[d].exists && dl[d].state != waiting)
#if DELIVERIES == 1
#define OPEN_ATTEMPTS (dl[0].open)
#define TAKEN_SLOTS TAKES_SLOT(0)
#else
#define OPEN_ATTEMPTS (dl[0].open + dl[1].open)
#define TAKEN_SLOTS (TAKES_SLOT(0) + TAKES_SLOT(1))
#endif

/* Any round of a delivery that fits. */
#define WITH_ROUND_1(d, FITS) :: FITS(d, 1) -> r = 1
#if ROUNDS > 2
#define WITH_ROUND_2(d, FITS) :: FITS(d, 2) -> r = 2
#else
#define WITH_ROUND_2(d, FITS)
#endif
#if ROUNDS > 3
#define WITH_ROUND_3(d, FITS) :: FITS(d, 3) -> r = 3
#else
#define WITH_ROUND_3(d, FITS)
#endif
#if ROUNDS > 4
#define WITH_ROUND_4(d, FITS) :: FITS(d, 4) -> r = 4
#else
#define WITH_ROUND_4(d, FITS)
#endif
#if ROUNDS > 5
#define WITH_ROUND_5(d, FITS) :: FITS(d, 5) -> r = 5
#else
#define WITH_ROUND_5(d, FITS)
#endif
#define WITH_ROUND(d, FITS) WITH_ROUND_1(d, FITS) WITH_ROUND_2(d, FITS) WITH_ROUND_3(d, FITS) \
  WITH_ROUND_4(d, FITS) WITH_ROUND_5(d, FITS)

inline settle(d, as) {
  dl[d].state = as;
  dl[d].settled++;
  assert(dl[d].settled <= dl[d].requested);      /* never settled twice */
  assert(as != delivered || dl[d].was_accepted); /* and never without its proof */
  assert(as != exhausted || (dl[d].exhausting & (1 << dl[d].round)));
  dl[d].due = 0;
  dl[d].claimed = 0;
  dl[d].leased = 0
}

inline close_attempt(d) {
  if
  :: dl[d].is_last -> dl[d].exhausting = dl[d].exhausting | (1 << dl[d].open_round)
  :: else
  fi;
  remove_open(d)
}

inline remove_open(d) {
  dl[d].open = 0;
  dl[d].expired = 0;
  dl[d].is_last = 0;
  dl[d].open_round = 0;
  dl[d].maker = 0
}

/* Its worker will not record its outcome. */
inline leave_attempt(d) {
  if
  :: dl[d].maker == me -> dl[d].maker = 0
  :: else
  fi
}

inline wait_again(d) {
  dl[d].due = 0;
  dl[d].claimed = 0
}

inline begin_round(d) {
  dl[d].round++;
  assert(dl[d].round < ROUNDS);
  dl[d].started = 0;
  dl[d].claimed = 0;
  dl[d].leased = 0;
  dl[d].due = 1
}

inline end_workflow(d, r) {
  W(d, r).phase = ended;
  W(d, r).holder = 0;
  W(d, r).stuck = 0;
  W(d, r).signalled = 0;
  W(d, r).timer_lost = 0;
  W(d, r).aged = 0;
  W(d, r).refused_once = 0;
  W(d, r).repeated = 0
}

/* Its attempt has ended and another follows: it waits, unless its cancellation was requested. */
inline wait_for_next(d, r) {
  if
  :: W(d, r).signalled -> end_workflow(d, r)
  :: else -> W(d, r).phase = timer
  fi
}

/* The worker does not reply: Temporal gives a workflow task to another, and closes an attempt as lost. */
inline give_up_task(d, r) {
  W(d, r).holder = 0;
  if
  :: W(d, r).phase == retry -> W(d, r).phase = loss; W(d, r).aged = 1
  :: else
  fi
}

/* The worker dies and is started again. */
inline leave_task(d, r) {
  if
  :: W(d, r).holder == me -> give_up_task(d, r)
  :: else
  fi;
  reset_worker()
}

inline reset_worker() {
  r = 0;
  is_first = 0;
  is_last = 0;
  aged = 0;
  repeated = 0;
  answer = none
}

proctype Platform(byte d) {
#ifdef OUTBOX_APART
  d_step { dl[d].requested = 1 };
  if
  :: d_step { true -> dl[d].exists = 1; dl[d].round = 1; dl[d].due = 1 }
  :: d_step { faults > 0 -> faults-- }
  fi
#else
  d_step { dl[d].requested = 1; dl[d].exists = 1; dl[d].round = 1; dl[d].due = 1 }
#endif
}

#ifdef CLAIM_WITHOUT_LEASE
#define IS_CLAIMED(d) dl[d].claimed
#else
#define IS_CLAIMED(d) dl[d].leased
#endif

proctype Relay(byte d) {
  byte r;
end_idle:
  if
  :: d_step { /* claim */
    dl[d].exists && !parked && dl[d].state == waiting && dl[d].due && !dl[d].started && !IS_CLAIMED(d) &&
    TAKEN_SLOTS - TAKES_SLOT(d) < SLOTS ->
    dl[d].stale = 0;
    dl[d].claimed = 1;
    dl[d].leased = 1;
    r = dl[d].round
  }
  fi;
  if
  :: d_step { /* start */
      true ->
      if
      :: W(d, r).phase == absent -> W(d, r).phase = first
      :: else
      fi
    }
  :: d_step { faults > 0 -> faults--; r = 0 }; goto end_idle /* it dies, or Temporal is away */
  fi;
  if
  :: d_step { /* record started */
      true ->
      if
      :: dl[d].round == r && dl[d].state == waiting -> dl[d].started = 1; dl[d].leased = 0
      :: else
      fi;
      r = 0
    }
  :: d_step { faults > 0 -> faults--; r = 0 }
  fi;
  goto end_idle
}

/* The sleep before a lost attempt is checked again ends when the attempt has expired. */
#define CAN_TAKE(d, r) ((W(d, r).phase == first || W(d, r).phase == retry || W(d, r).phase == loss) \
  && W(d, r).holder == 0 && !W(d, r).stuck \
  && (W(d, r).phase != loss || !W(d, r).aged || !dl[d].open || dl[d].open_round != (r) || dl[d].expired))

proctype Worker(byte d; byte me) {
  byte r;
  bool is_first, is_last, aged, repeated;
  mtype:result answer = none;
end_idle:
  atomic {
    if
    WITH_ROUND(d, CAN_TAKE)
    fi;
    W(d, r).holder = me;
    is_first = W(d, r).phase == first;
    is_last = W(d, r).refused_once;
    aged = W(d, r).aged;
    repeated = W(d, r).repeated;
    if
    :: W(d, r).phase == loss -> goto lost
    :: else
    fi
  };
  atomic {
    if
    :: d_step { /* admit */
        true ->
        if
        :: !IS_WAITING_IN(d, r) || parked || dl[d].stale -> answer = closed
        :: else ->
          if
          :: is_first && (dl[d].attempted & (1 << r)) -> answer = begun
          :: else ->
            if
#ifndef ADMIT_BESIDE_OPEN
            :: dl[d].open -> answer = postponed
#endif
#ifndef ADMIT_WITHOUT_SLOT
            :: !dl[d].open && OPEN_ATTEMPTS >= SLOTS -> answer = postponed
#endif
            :: else ->
              dl[d].open = 1;
              dl[d].expired = 0;
              dl[d].open_round = r;
              dl[d].is_last = is_last;
              dl[d].maker = me;
              dl[d].attempted = dl[d].attempted | (1 << r);
              dl[d].started = 1; /* only its workflow asks */
              dl[d].leased = 0;
              wait_again(d);
              dl[d].posting++;
              assert(dl[d].posting == 1);    /* never two attempts at once */
              assert(OPEN_ATTEMPTS <= SLOTS) /* never more than there are slots */
            fi
          fi
        fi
      }
    :: d_step { faults > 0 -> faults--; answer = no_reply } /* PostgreSQL is away */
    :: d_step { faults > 0 -> faults--; leave_task(d, r) }; goto end_idle
    fi;
    if
    :: answer != none -> goto report
    :: else
    fi
  };
  if
  :: d_step { true -> dl[d].posting--; answer = accepted }
  :: d_step { true -> dl[d].posting--; answer = refused }
  :: d_step { faults > 0 -> faults--; dl[d].posting--; answer = internal }
  :: d_step { faults > 0 -> faults--; dl[d].posting--; leave_attempt(d); leave_task(d, r) }; goto end_idle
  fi;
  if
  :: d_step { /* record outcome */
      true ->
      if
      :: answer == accepted ->
        dl[d].was_accepted = 1;
        if
        :: dl[d].maker == me -> remove_open(d)
        :: else
        fi;
        if
        :: dl[d].state == waiting -> settle(d, delivered)
        :: dl[d].state == exhausted -> dl[d].state = delivered
        :: else
        fi
#ifdef OUTCOME_UNGUARDED
      :: answer != accepted ->
        dl[d].exhausting = dl[d].exhausting | (is_last << r);
        if
        :: dl[d].maker == me -> close_attempt(d)
        :: else
        fi;
        if
        :: answer == refused && is_last -> settle(d, exhausted)
        :: else -> wait_again(d)
        fi
#else
      :: answer != accepted && dl[d].maker == me ->
        if
        :: answer == refused -> close_attempt(d)
        :: else -> remove_open(d)
        fi;
        if
        :: IS_WAITING_IN(d, r) ->
          if
          :: answer == refused && is_last -> settle(d, exhausted)
          :: else -> wait_again(d)
          fi
        :: else
        fi
      :: else /* it was closed as lost meanwhile */
#endif
      fi;
      if
      :: answer == refused && is_last -> answer = last_failed
      :: answer == refused && !is_last -> answer = failed
      :: else
      fi
    }
  :: d_step { /* PostgreSQL is away for longer than the attempt has time */
      faults > 0 ->
      faults--;
      answer = no_reply;
      leave_attempt(d)
    }
  :: d_step { faults > 0 -> faults--; leave_attempt(d); leave_task(d, r) }; goto end_idle
  fi;
  goto report;

lost:
  if
  :: d_step { /* record lost */
      true ->
      if
      :: dl[d].open && dl[d].open_round == r && (!aged || dl[d].expired) ->
        close_attempt(d);
        if
        :: !is_last -> answer = failed
        :: is_last && !repeated -> answer = postponed
        :: else -> answer = last_failed
        fi;
        if
        :: IS_WAITING_IN(d, r) ->
          if
          :: answer == last_failed -> settle(d, exhausted)
          :: else -> wait_again(d)
          fi
        :: else
        fi;
        repeated = is_last
      :: else ->
        if
        :: dl[d].open && dl[d].open_round == r -> answer = under_way
        :: else ->
          if
          :: !IS_WAITING_IN(d, r) -> answer = closed
          :: else ->
            if
            :: !dl[d].due && !is_last -> answer = failed /* only the message about its outcome was lost */
            :: else -> answer = postponed
            fi
          fi
        fi
      fi
    }
  :: d_step { faults > 0 -> faults--; leave_task(d, r) }; goto end_idle
  fi;

report:
  if
  :: d_step { /* the worker's answer to Temporal */
      true ->
      if
      :: W(d, r).holder == me && W(d, r).stuck -> W(d, r).holder = 0
      :: W(d, r).holder == me && !W(d, r).stuck ->
        W(d, r).holder = 0;
        if
        :: answer == accepted || answer == closed || answer == last_failed -> end_workflow(d, r)
        :: answer == failed -> W(d, r).refused_once = 1; W(d, r).aged = 0; wait_for_next(d, r)
        :: answer == postponed || answer == internal ->
          W(d, r).repeated = repeated;
          W(d, r).aged = 0;
          wait_for_next(d, r)
        :: answer == begun -> W(d, r).phase = loss; W(d, r).aged = 1
        :: answer == no_reply ->
          W(d, r).phase = loss;
#ifdef LOST_WITHOUT_AGE
          W(d, r).aged = 0
#else
          W(d, r).aged = 1
#endif
        :: else /* it asks again when the attempt has expired */
        fi
      :: else /* Temporal has given the task away */
      fi;
      reset_worker()
    }
  :: d_step { faults > 0 -> faults--; leave_task(d, r) }; goto end_idle
  fi;
  goto end_idle
}

/* A round that cannot make progress is replaced, but never while an admitted attempt may be in progress. */
#ifdef STUCK_IS_BUSY
#define NEEDS_HELP(d, r) false
#elif defined(REPAIR_CLOSES_ATTEMPT)
#define NEEDS_HELP(d, r) W(d, r).stuck
#else
#define NEEDS_HELP(d, r) (W(d, r).stuck && !dl[d].open)
#endif
#define CAN_REPAIR(d, r) (IS_WAITING_IN(d, r) && !parked && dl[d].started && !dl[d].stale && dl[d].due \
  && (W(d, r).phase == absent || W(d, r).phase == ended || W(d, r).phase == timer || NEEDS_HELP(d, r)))

proctype Reconciler(byte d) {
  byte r;
end_idle:
#ifdef NO_RECONCILER
  false;
#endif
  atomic { /* list overdue */
    if
    WITH_ROUND(d, CAN_REPAIR)
    fi
  };
  if
  :: d_step { W(d, r).phase == timer && !W(d, r).stuck -> W(d, r).timer_lost = 0; W(d, r).phase = retry; r = 0 }
  :: W(d, r).phase == absent || W(d, r).phase == ended -> goto begin
  :: d_step { /* replace round: only if no attempt is open */
      IS_RUNNING(d, r) && NEEDS_HELP(d, r) ->
#ifdef REPAIR_CLOSES_ATTEMPT
      remove_open(d);
#endif
      if
      :: IS_WAITING_IN(d, r) && !dl[d].open -> begin_round(d)
      :: else
      fi
    };
    if
    :: d_step { dl[d].round != r -> end_workflow(d, r); r = 0 } /* terminate */
    :: d_step { dl[d].round == r -> r = 0 }
    :: d_step { faults > 0 -> faults--; r = 0 }
    fi;
    goto end_idle
  :: d_step { IS_RUNNING(d, r) && !NEEDS_HELP(d, r) && (W(d, r).phase != timer || W(d, r).stuck) -> r = 0 }
  fi;
  goto end_idle;
begin:
  if
  :: d_step { /* begin round */
      true ->
      if
      :: IS_WAITING_IN(d, r) -> begin_round(d)
      :: else
      fi;
      r = 0
    }
  :: d_step { faults > 0 -> faults--; r = 0 }
  fi;
  goto end_idle
}

proctype Abandoned(byte d) {
end_idle:
  do
  :: d_step { /* close abandoned */ dl[d].open && dl[d].expired -> close_attempt(d) }
  od
}

#define CAN_SWEEP(d, r) (IS_RUNNING(d, r) && !W(d, r).stuck && !W(d, r).signalled \
  && (!IS_WAITING_IN(d, r) || parked || dl[d].stale))

proctype Sweep(byte d) {
  byte r;
end_idle:
  atomic { /* list orphaned */
    if
    WITH_ROUND(d, CAN_SWEEP)
    fi
  };
  d_step { /* cancel */
    true ->
    if
    :: W(d, r).phase == timer -> end_workflow(d, r)
    :: W(d, r).phase != timer && IS_RUNNING(d, r) -> W(d, r).signalled = 1
    :: else
    fi;
    r = 0
  };
  goto end_idle
}

/* Time passes at any speed, but an attempt does not expire while it is posted. */
proctype Leases(byte d) {
end_idle:
  do
#ifdef CLAIM_WITHOUT_LEASE
  :: false
#else
  :: d_step { dl[d].leased -> dl[d].leased = 0 }
#endif
  od
}

proctype Expiry(byte d) {
end_idle:
  do
  :: d_step { dl[d].open && !dl[d].expired && dl[d].maker == 0 -> dl[d].expired = 1 }
  :: d_step { /* its maker is late */
      faults > 0 && dl[d].open && !dl[d].expired && dl[d].maker != 0 && dl[d].posting == 0 ->
      faults--;
      dl[d].expired = 1
    }
  od
}

proctype Schedule(byte d) {
end_idle:
  do
  :: d_step { dl[d].exists && dl[d].state == waiting && !dl[d].due && (!dl[d].open || dl[d].expired) -> dl[d].due = 1 }
  od
}

#define CAN_FIRE(d, r) (W(d, r).phase == timer && !W(d, r).timer_lost && !W(d, r).stuck \
  && (dl[d].due || !IS_WAITING_IN(d, r)))

proctype Timers(byte d) {
  byte r;
end_idle:
  atomic {
    if
    WITH_ROUND(d, CAN_FIRE)
    fi;
    W(d, r).phase = retry;
    r = 0
  };
  goto end_idle
}

#define IS_HELD(d, r) (faults > 0 && W(d, r).holder != 0)
#define CAN_STICK(d, r) (faults > 0 && IS_RUNNING(d, r) && !W(d, r).stuck)
#define CAN_LOSE_TIMER(d, r) (faults > 0 && W(d, r).phase == timer && !W(d, r).timer_lost)

/* Faults other than a process that dies. */
proctype Faults(byte d) {
  byte r;
end_idle:
  do
  :: atomic { if WITH_ROUND(d, IS_HELD) fi; give_up_task(d, r); faults--; r = 0 }
  :: atomic { if WITH_ROUND(d, CAN_STICK) fi; W(d, r).stuck = 1; faults--; r = 0 }
  :: atomic { if WITH_ROUND(d, CAN_LOSE_TIMER) fi; W(d, r).timer_lost = 1; faults--; r = 0 }
  :: atomic { /* Temporal's store is lost */
      faults > 0 ->
      faults--;
      r = 0;
      do
      :: r < DELIVERIES * ROUNDS -> wf[r].phase = absent; wf[r].holder = 0; wf[r].stuck = 0; wf[r].signalled = 0;
        wf[r].timer_lost = 0; wf[r].aged = 0; wf[r].refused_once = 0; wf[r].repeated = 0; r++
      :: else -> break
      od;
      r = 0
    }
  od
}

proctype Maintenance(byte d) {
end_idle:
  do
  :: d_step { /* restart */
      dl[d].exists && dl[d].state == waiting && dl[d].started && dl[d].stale && !parked -> begin_round(d)
    }
  od
}

/* An operator, or a member of the organization. */
proctype Webhook() {
end_idle:
  do
  :: d_step { parks > 0 && !parked -> parks--; parked = 1 }
  :: d_step { /* resume */
      parked ->
      parked = 0;
#if DELIVERIES > 1
      dl[1].stale = 1;
#endif
      dl[0].stale = 1
    }
  od
}

proctype Person(byte d) {
  byte r;
end_idle:
  do
  :: d_step { /* redeliver */
      redeliveries > 0 && dl[d].exists && !parked && (dl[d].state == delivered || dl[d].state == exhausted) ->
      redeliveries--;
      dl[d].requested++;
      dl[d].state = waiting;
      dl[d].was_accepted = 0;
      begin_round(d)
    }
  :: d_step { /* retry now */
      redeliveries > 0 && dl[d].exists && !parked && dl[d].state == waiting ->
      redeliveries--;
      dl[d].due = 1;
      if
      :: dl[d].started && dl[d].stale -> begin_round(d)
      :: else
      fi;
      r = dl[d].round
    };
    if
    :: d_step { true -> if :: W(d, r).phase == timer && !W(d, r).stuck -> W(d, r).phase = retry :: else fi; r = 0 }
    :: d_step { faults > 0 -> faults--; r = 0 } /* the signal is lost */
    fi
  :: d_step { /* cancel */
      cancels > 0 && dl[d].exists && dl[d].state == waiting ->
      cancels--;
      begin_round(d);
      settle(d, cancelled)
    }
  od
}

#define IS_DONE(d) (parked || dl[d].requested == 0 || dl[d].requested == dl[d].settled)

#ifndef LIVENESS
/* No delivery is lost: when nothing more can happen, all are settled, or the webhook is suspended or paused. */
proctype Judge() {
  timeout ->
  assert(IS_DONE(0));
#if DELIVERIES > 1
  assert(IS_DONE(1))
#endif
}
#endif

init {
  byte d, n;
  atomic {
    d = 0;
    do
    :: d < DELIVERIES ->
      run Platform(d);
      n = 0;
      do
      :: n < RELAYS -> run Relay(d); n++
      :: else -> break
      od;
      n = 0;
      do
      :: n < WORKERS -> n++; run Worker(d, d * WORKERS + n)
      :: else -> break
      od;
      run Reconciler(d);
      run Abandoned(d);
      run Leases(d);
      run Expiry(d);
      run Schedule(d);
      run Timers(d);
      run Sweep(d);
#if PARKS > 0
      run Maintenance(d);
#endif
#if FAULTS > 0
      run Faults(d);
#endif
#if REDELIVERIES + CANCELS > 0
      run Person(d);
#endif
      d++
    :: else -> break
    od;
#if PARKS > 0
    run Webhook();
#endif
#ifndef LIVENESS
    run Judge();
#endif
    d = 0;
    n = 0
  }
}

#ifdef LIVENESS
#if DELIVERIES == 1
ltl settles { [] <> (dl[0].requested > 0 && IS_DONE(0)) }
#else
ltl settles { [] <> (dl[0].requested > 0 && IS_DONE(0)) && [] <> (dl[1].requested > 0 && IS_DONE(1)) }
#endif
#endif
