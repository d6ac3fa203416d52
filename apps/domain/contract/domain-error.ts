/** An error: `reason` for programs, `message` a sentence for the caller. Neither has a secret. */
export class DomainError<Reason extends string = string> extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.reason = reason;
  }
}
