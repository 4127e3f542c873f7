/** The mark: a voice's wave. The same picture as public/icon.svg. */
export function Mark({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={className} aria-hidden="true">
      <rect width="32" height="32" rx="9" fill="var(--primary)" />
      <g fill="none" stroke="var(--primary-foreground)" strokeWidth="2.8" strokeLinecap="round">
        <path d="M8.5 13.5v5" />
        <path d="M13.5 9v14" />
        <path d="M18.5 11.5v9" />
        <path d="M23.5 14.5v3" />
      </g>
    </svg>
  );
}
