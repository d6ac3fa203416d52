import { hash } from 'node:crypto';

export type Path = readonly (string | number)[];

/**
 * Repeatable random numbers: the same path gives the same ones in any order of calls. Draws from
 * SHA-256 of the path. With 32 bits, ids would repeat among a million.
 */
export class Random {
  readonly #name: string;
  #block = 0;
  #bytes: Buffer;
  #offset = 0;

  constructor(...path: Path) {
    this.#name = path.join('/');
    this.#bytes = hash('sha256', this.#name, 'buffer');
  }

  /** Returns a whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.#next() * (max - min + 1));
  }

  /** Returns true in `share` of all cases, 0 to 1. */
  chance(share: number): boolean {
    return this.#next() < share;
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[this.whole(0, list.length - 1)] ?? list[0];
  }

  #next(): number {
    if (this.#offset === this.#bytes.length) {
      this.#block += 1;
      this.#bytes = hash('sha256', `${this.#name}#${this.#block}`, 'buffer');
      this.#offset = 0;
    }
    this.#offset += 4;
    return this.#bytes.readUInt32BE(this.#offset - 4) / 2 ** 32;
  }
}

/** Returns the path's UUID, in the form of version 4. */
export function deriveUuid(...path: Path): string {
  const bytes = hash('sha256', `id:${path.join('/')}`, 'buffer').subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
