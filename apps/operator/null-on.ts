/** Awaits a request. Returns null when it was refused with this code, an HTTP status or one of gRPC. */
export async function nullOn<T>(code: number, request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (cause) {
    if ((cause as { code?: unknown }).code === code) return null;
    throw cause;
  }
}
