/** Workflows whose every task fails, as those of a build that cannot work. */
async function fail(): Promise<never> {
  // Not an ApplicationFailure: it fails the task, and Temporal tries again.
  throw new Error('this build cannot work');
}

export { fail as deliverEvent, fail as sendTest };
