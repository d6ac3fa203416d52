/**
 * A map of at most `limit` entries. `set` puts an entry last, also one that it replaces, and drops
 * the first when there are more.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #limit: number;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#limit) this.delete(this.keys().next().value as Key);
    return this;
  }
}
