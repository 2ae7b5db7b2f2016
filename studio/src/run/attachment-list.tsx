import type { ReactNode } from "react";
import type { Attachment } from "./attachment.ts";

/** The pictures to send, each with a button to remove it. */
export function AttachmentList({
  items,
  onRemove,
}: {
  readonly items: readonly Attachment[];
  readonly onRemove: (index: number) => void;
}): ReactNode {
  if (items.length === 0) return null;
  return (
    <ul className="run-attachments" aria-label="Pictures to send">
      {items.map(({ name = "Picture", mediaType, data }, index) => (
        <li key={index}>
          <img src={`data:${mediaType};base64,${data}`} alt={name} />
          <button type="button" className="button small" aria-label={`Remove ${name}`} onClick={() => onRemove(index)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}
