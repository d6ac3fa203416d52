import { type ParseArgsConfig, parseArgs } from 'node:util';
import { UsageError } from '#runtime/errors.ts';

/**
 * Parses a command's options.
 *
 * @throws UsageError also for a second value of an option that has one: only the last would have an effect.
 */
export function parseOptions<Config extends ParseArgsConfig>(config: Config): ReturnType<typeof parseArgs<Config>> {
  const { tokens = [] } = parse({ ...config, tokens: true });
  const given = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
  const repeated = given.find(
    (name, index) => given.indexOf(name) < index && config.options?.[name]?.multiple !== true,
  );
  if (repeated !== undefined) throw new UsageError(`--${repeated} is given more than once.`);
  return parse(config);
}

function parse<Config extends ParseArgsConfig>(config: Config): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('\n')[0]}`);
  }
}

/**
 * Rejects a call with an option that would be ignored.
 *
 * @param problems - for each option that exists, why it has no effect in this call, as the rest of a sentence that
 *   begins with its name; null: it has one.
 * @throws UsageError
 */
export function rejectIgnored<Values extends object>(
  values: Values,
  problems: Record<keyof Values & string, string | null>,
): void {
  for (const [name, problem] of Object.entries<string | null>(problems))
    if (problem !== null && name in values) throw new UsageError(`--${name} ${problem}.`);
}
