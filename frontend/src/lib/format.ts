const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const KIB = 1024;

/** "1.2 GiB", "98 MiB": binary units, the ones that memory is sold and counted in. */
export function formatBytes(bytes: number): string {
  if (bytes >= GIB) return `${(bytes / GIB).toFixed(bytes >= 10 * GIB ? 0 : 1)} GiB`;
  if (bytes >= MIB) return `${Math.round(bytes / MIB)} MiB`;
  if (bytes >= KIB) return `${Math.round(bytes / KIB)} KiB`;
  return `${bytes} B`;
}

/** "0.8 s", "42 s", "3 min 20 s", "2 h 5 min". */
export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** "40 ms" below a second, from there on as `formatSeconds` says it. */
export function formatMilliseconds(milliseconds: number): string {
  return milliseconds < 1000
    ? `${Math.round(milliseconds)} ms`
    : formatSeconds(milliseconds / 1000);
}

/** "85 tokens/s"; one decimal below ten, where it matters. */
export function formatTokensPerSecond(tokensPerSecond: number): string {
  const digits = tokensPerSecond < 10 ? 1 : 0;
  return `${tokensPerSecond.toFixed(digits)} tokens/s`;
}

/** "8 192": thin groups, the same in every locale, so that pictures and tests agree. */
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
