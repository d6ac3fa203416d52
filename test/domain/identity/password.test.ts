// cspell:ignore tzold Ｐätzold pätzold
/** Rules for passwords, and how they are stored. Source: OWASP ASVS 5.0, 6.2 and 11.4. */
import { argon2Sync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isCommonPassword } from '#domain/identity/common-passwords.ts';
import { assertNewPassword, hashPassword, isOutdated, isPassword } from '#domain/identity/password.ts';
import { measureProcessorMs } from '#test/processor-ms.ts';

const context = ['Ada Rivers', 'ada.rivers@harbor-law.example', 'Harbor Family Law', 'Pätzold & 山本 Mediation'];
const judge = (password: string) =>
  assertNewPassword(password, context).then(
    () => 'taken',
    (error: { reason: string }) => error.reason,
  );

describe('a new password', () => {
  it('has 12 to 128 characters, counted as a person counts them', async () => {
    expect(await judge('vq7 mz2 kd9')).toBe('password_too_short');
    expect(await judge('vq7 mz2 kd9!')).toBe('taken');
    expect(await judge('🦜🌲🧲🪐🫖🧩🪁🛶🧭🪗🦔')).toBe('password_too_short'); // 11, though 22 UTF-16 units
    expect(await judge('🦜🌲🧲🪐🫖🧩🪁🛶🧭🪗🦔🧵')).toBe('taken');
    const long = 'four words at the sea '.repeat(6).slice(0, 128);
    expect(await judge(long)).toBe('taken');
    expect(await judge(`${long}x`)).toBe('password_too_long');
  });

  it('may contain any character', async () => {
    for (const password of [
      'violet harbour tractor mango',
      '  ¶ ☂ ¤ ‽ § ✂',
      'пароль из четырёх слов',
      '739105824617395',
      'ALLCAPSXKJWQZV',
    ])
      expect([password, await judge(password)]).toEqual([password, 'taken']);
  });

  it('is rejected when it is easy to guess: a common one, made of common ones, or known about the person', async () => {
    const guessed = [
      '123qweasdzxc',
      'PasswordPassword',
      'Password12345!',
      'qwertyuiop12',
      'aaaaaaaaaaaa',
      'xqzxqzxqzxqz1',
      'ada.rivers@harbor-law.example',
      'sunshinebutterfly',
      '123456789012',
      'AdaRivers2026',
      'patzold mediation 1',
      'Pätzold-Mediation',
      'harbor-law12',
      'su\u20ddnsh\u20ddine\u20ddbutterfly', // a mark of no Latin letter
      'org-api-console',
      'Harbor Family Law',
      'ada.rivers1!',
      'Rivers123456',
    ];
    for (const password of guessed) expect([password, await judge(password)]).toEqual([password, 'password_common']);
  });

  it('takes less to judge than a few hashes, whatever its characters fold to, and however long the names are', async () => {
    const longNames = ['Ada '.padEnd(200, 'r'), 'ada@example.org', 'O'.repeat(200)];
    const hardest = ['\ufdfa'.repeat(128), 'a'.repeat(64).padEnd(128, 'vq7mz2kd9w')];
    const hashMs = await measureProcessorMs(() => isPassword('wrong wrong wrong', null));
    // Until it is judged, the process does nothing else. Without a bound the first took 11 hashes of busy cores.
    for (const [index, password] of hardest.entries())
      expect(
        (await measureProcessorMs(() => isCommonPassword(password, longNames))) / hashMs,
        String(index),
      ).toBeLessThan(5);
  });

  it('is compared with far more than the 3,000 most common ones of its length', async () => {
    // Pairs of ten listed words: a hundred of the millions that the rule covers.
    const words = [
      'dragon',
      'monkey',
      'sunshine',
      'football',
      'princess',
      'shadow',
      'michael',
      'jordan',
      'superman',
      'charlie',
    ];
    for (const first of words)
      for (const second of words) expect(await judge(`${first}${second}`.padEnd(12, '1'))).toBe('password_common');
  });
});

describe('a stored password', () => {
  it('is argon2id in PHC format with its own salt, and verifies for that password only', async () => {
    const [one, two] = [await hashPassword('correct horse'), await hashPassword('correct horse')];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(one).not.toBe(two);
    expect(await isPassword('correct horse', one)).toBe(true);
    for (const wrong of ['correct hors', 'Correct horse', 'correct horse ', '', 'x'.repeat(1_000_000)])
      expect(await isPassword(wrong, one)).toBe(false);
  });

  it('agrees with a vector of the reference implementation', async () => {
    // "password", "somesalt", two passes of 64 MiB: from the tests of the reference implementation.
    const hash = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    expect(await isPassword('password', hash)).toBe(true);
    expect(await isPassword('passwore', hash)).toBe(false);
    expect(isOutdated(hash)).toBe(true);
    expect(isOutdated(await hashPassword('password'))).toBe(false);
  });

  it('never verifies for an unknown person', async () => {
    expect(await isPassword('anything at all', null)).toBe(false);
    expect(await isPassword('', null)).toBe(false);
    expect(typeof argon2Sync).toBe('function'); // Node's implementation
  });

  it('matches in every Unicode form of its characters and spaces, and in no other case or width', async () => {
    // RFC 8265, OpaqueString: spaces of Zs become U+0020, then NFC.
    const forms = ['Pätzold café zum See', 'Pa\u0308tzold cafe\u0301 zum See', 'Pätzold\u00a0café\u3000zum\u2003See'];
    for (const enrolled of forms) {
      const hash = await hashPassword(enrolled);
      for (const typed of forms) expect([typed, await isPassword(typed, hash)]).toEqual([typed, true]);
      for (const typed of [
        'pätzold café zum See',
        'Pätzold cafe zum See',
        'Pätzold café zum See ',
        'Pätzold  café zum See',
        'Ｐätzold café zum See',
      ])
        expect([typed, await isPassword(typed, hash)]).toEqual([typed, false]);
    }
  });

  it('is judged in the form in which it is stored', async () => {
    expect(await judge('e\u0301'.repeat(11))).toBe('password_too_short'); // 11 é, 22 code points as typed
    expect(await judge(`${'ë'.normalize('NFD')}q${'ü7 kä2 vö9 zß4 '.normalize('NFD').repeat(8)}`)).toBe('taken');
    expect(await judge('password\u00a0password')).toBe('password_common');
  });
});
