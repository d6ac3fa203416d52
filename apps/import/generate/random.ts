import { hash } from 'node:crypto';

/** Repeatable random numbers: the same path gives the same ones in any order of calls. */
export interface Random {
  /** Returns a whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number;
  /** Returns true in `share` of all cases, 0 to 1. */
  chance(share: number): boolean;
  pick<T>(list: readonly [T, ...T[]]): T;
}

export type Path = readonly (string | number)[];

/** Draws from SHA-256 of the path. With 32 bits, ids would repeat among a million. */
export function seededRandom(...path: Path): Random {
  const name = path.join('/');
  let block = 0;
  let bytes = hash('sha256', name, 'buffer');
  let offset = 0;
  const next = (): number => {
    if (offset === bytes.length) {
      block += 1;
      bytes = hash('sha256', `${name}#${block}`, 'buffer');
      offset = 0;
    }
    offset += 4;
    return bytes.readUInt32BE(offset - 4) / 2 ** 32;
  };
  const whole = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    whole,
    chance: (share) => next() < share,
    pick: (list) => list[whole(0, list.length - 1)] ?? list[0],
  };
}

/** Returns the path's UUID, in the form of version 4. */
export function deriveUuid(...path: Path): string {
  const bytes = hash('sha256', `id:${path.join('/')}`, 'buffer').subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
