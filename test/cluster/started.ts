/**
 * Starts something that stops with everything else that was started. What is still starting when an
 * interruption stops the rest is stopped as soon as it is up.
 *
 * @throws ReferenceError, and starts nothing, when the rest is stopped already.
 */
export async function startWith<T extends { stop(): Promise<void> } | null>(
  started: AsyncDisposableStack,
  start: () => Promise<T>,
): Promise<T> {
  let starting: Promise<T> | undefined;
  started.defer(async () => {
    const running = await starting?.catch(() => null);
    await running?.stop();
  });
  starting = start();
  return starting;
}
