/** The command was called wrongly: exit code 2. */
export class WrongUse extends Error {}

/**
 * The call was fine and is refused: exit code 1, and the message is the sentence for the person who
 * asked.
 */
export class Refused extends Error {}

/** The person stopped watching what goes on without this command: exit code 130. */
export class LeftRunning extends Error {}
