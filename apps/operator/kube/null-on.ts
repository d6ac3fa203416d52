/** Returns the answer to a request; null when it was refused with this HTTP or gRPC status. */
export async function nullOn<T>(code: number, request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (cause) {
    if ((cause as { code?: unknown }).code === code) return null;
    throw cause;
  }
}
