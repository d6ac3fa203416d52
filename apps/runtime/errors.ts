/** An expected startup failure. The message says what to fix; no stack trace is printed. */
export class StartupError extends Error {}

/** A command was called wrongly: exit code 2. The message says how; the caller adds where its usage is. */
export class UsageError extends Error {}

/** Every problem of an app's settings, one sentence each, without a value. */
export class InvalidSettingsError extends StartupError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(`The settings have ${count}:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'InvalidSettingsError';
    this.problems = problems;
  }
}
