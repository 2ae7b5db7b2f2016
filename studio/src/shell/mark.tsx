import type { ReactNode } from "react";

/** The mark of Skein: two strands that cross and part. The same drawing is in `public/icon.svg`. */
export function Mark(): ReactNode {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect className="mark-ground" width="32" height="32" rx="8" />
      <path className="mark-strand" d="M10 26V22c0-6 12-6 12-12V6" />
      <path className="mark-gap" d="M22 26V22c0-6-12-6-12-12V6" />
      <path className="mark-thread" d="M22 26V22c0-6-12-6-12-12V6" />
    </svg>
  );
}
