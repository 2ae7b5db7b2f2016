import type { ReactNode } from "react";
import type { PendingFile } from "./attachment.ts";

/** The files to send, each with its progress and a button to remove it. */
export function AttachmentList({
  items,
  onRemove,
}: {
  readonly items: readonly PendingFile[];
  readonly onRemove: (key: number) => void;
}): ReactNode {
  if (items.length === 0) return null;
  return (
    <ul className="run-attachments" aria-label="Files to send">
      {items.map(({ key, name, preview, progress, part }) => (
        <li key={key}>
          {preview === null ? (
            <span className="run-attachment-name small">{name}</span>
          ) : (
            <img src={preview} alt={name} />
          )}
          {part === null && <progress aria-label={`Uploading ${name}`} value={progress} max={1} />}
          <button type="button" className="button small" aria-label={`Remove ${name}`} onClick={() => onRemove(key)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}
