import { type ReactNode, useState } from "react";

/** Something that is folded until it is asked for; what is folded is not drawn at all. */
export function Fold({
  title,
  className = "",
  open: openAtFirst = false,
  children,
}: {
  readonly title: ReactNode;
  readonly className?: string;
  /** Whether it is open at first. */
  readonly open?: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const [open, setOpen] = useState(openAtFirst);
  return (
    <details
      className={`transcript-fold ${className}`}
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{title}</summary>
      {open && <div className="transcript-fold-body">{children}</div>}
    </details>
  );
}
