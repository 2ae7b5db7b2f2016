/** Describes a thrown value of any kind as text; never throws itself. */
export function describeThrown(error: unknown): string {
  try {
    if (error === undefined || error === null) return `${error} was thrown, which says nothing about the reason.`;
    const message: unknown = typeof error === "object" && "message" in error ? error.message : undefined;
    if (typeof message === "string" && message !== "") return message;
    return error instanceof Error ? String(error.name) : String(error);
  } catch {
    return "Something was thrown that cannot be shown.";
  }
}
