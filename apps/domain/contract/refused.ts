/**
 * A refusal of the domain: `reason` is for programs, `message` is a sentence for the caller.
 * Neither contains a secret.
 */
export class Refused<Reason extends string = string> extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.reason = reason;
  }
}
