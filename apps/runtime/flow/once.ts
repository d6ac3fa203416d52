/** Runs `action` at the first call. Every call returns the same promise. */
export function once<T>(action: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= action();
    return running;
  };
}
