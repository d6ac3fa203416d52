/** Access of one organization as a few rules: what calls answer, which events follow, and what a roster shows. */

/** Times are hours; `now` is a whole number, and what is planned lies a quarter or half beside one. */
export interface ModelGrant {
  id: string;
  professional: string;
  family: string;
  since: number;
  ends: number | null;
  status: 'scheduled' | 'active' | 'ended' | 'withdrawn';
  reason: 'ended' | 'moved' | null;
  hasSeat: boolean;
  events: string[];
}

type Start = Pick<ModelGrant, 'id' | 'professional' | 'family' | 'ends'> & { since: number | null };

export class GrantModel {
  now = 0;
  grants = new Map<string, ModelGrant>();

  /** Carries out a call; one that is rejected changes nothing. */
  call(change: (model: this) => string): string {
    const before = structuredClone(this.grants);
    const result = change(this);
    if (!/^(created|changed|unchanged)$/.test(result)) this.grants = before;
    return result;
  }

  start({ id, professional, family, since, ends }: Start): string {
    if (this.grants.has(id)) return 'unchanged';
    const begins = since ?? this.now;
    const isOver = ends !== null && ends <= this.now;
    const status = isOver ? 'ended' : begins > this.now ? 'scheduled' : 'active';
    const events = status === 'active' ? ['client.started'] : [];
    const reason = isOver ? 'ended' : null;
    this.grants.set(id, { id, professional, family, since: begins, ends, status, reason, hasSeat: false, events });
    return 'created';
  }

  end(id: string, reason: 'ended' | 'moved' = 'ended'): string {
    const grant = this.#lock(id);
    if (grant.status === 'withdrawn') return 'unchanged';
    if (grant.status === 'ended') return grant.reason === reason ? 'unchanged' : 'grant_has_ended';
    if (grant.status === 'scheduled') grant.status = 'withdrawn';
    else this.#finish(grant, reason);
    return 'changed';
  }

  planEnd(id: string, ends: number): string {
    const grant = this.#lock(id);
    if (grant.ends === ends) return 'unchanged';
    if (!this.#isOpen(grant)) return 'grant_has_ended';
    if (ends <= this.now) return 'ends_in_past';
    if (ends < grant.since) return 'ends_before_it_begins';
    grant.ends = ends;
    return 'changed';
  }

  move(id: string, newId: string, professional: string): string {
    const grant = this.#lock(id);
    const isMoved = grant.status === 'withdrawn' || grant.reason === 'moved';
    if (isMoved && this.grants.has(newId)) return 'unchanged';
    if (!this.#isOpen(grant)) return 'grant_has_ended';
    if (grant.professional === professional) return 'same_professional';
    const { family, ends } = grant;
    this.end(id, 'moved');
    this.start({ id: newId, professional, family, since: Math.max(this.now, grant.since), ends });
    return 'changed';
  }

  assignSeat(id: string): string {
    const grant = this.#lock(id);
    if (grant.status !== 'active' || !this.#isOpen(grant)) return 'grant_not_active';
    if ([...this.grants.values()].some(({ family, hasSeat }) => hasSeat && family === grant.family))
      return 'family_has_seat';
    grant.hasSeat = true;
    grant.events.push('seat.given');
    return 'created';
  }

  /** What the worker writes. */
  work(): void {
    for (const { id } of this.grants.values()) this.#lock(id);
  }

  /** What a reader sees: id and status, in the order of ids. */
  listRoster(): [id: string, status: string][] {
    return [...this.grants.values()]
      .filter(({ status, since }) => status !== 'withdrawn' && (status !== 'scheduled' || since <= this.now))
      .map((grant): [string, string] => [
        grant.id,
        grant.status === 'ended' || !this.#isOpen(grant) ? 'ended' : 'active',
      ])
      .sort();
  }

  /** The grant, begun and ended if its times have come. */
  #lock(id: string): ModelGrant {
    const grant = this.grants.get(id);
    if (grant === undefined) throw new Error(`no grant ${id}`);
    if (grant.status === 'scheduled' && grant.since <= this.now) {
      grant.status = 'active';
      grant.events.push('client.started');
    }
    if (grant.status === 'active' && !this.#isOpen(grant)) this.#finish(grant, 'ended');
    return grant;
  }

  #isOpen({ status, ends }: ModelGrant): boolean {
    return (status === 'active' || status === 'scheduled') && (ends === null || ends > this.now);
  }

  #finish(grant: ModelGrant, reason: 'ended' | 'moved'): void {
    // The time of the call equals no planned end.
    if (grant.ends === null || grant.ends > this.now) grant.ends = Number.NaN;
    grant.events.push(...(grant.hasSeat ? ['seat.ended'] : []), 'client.ended');
    Object.assign(grant, { status: 'ended', reason, hasSeat: false });
  }
}
