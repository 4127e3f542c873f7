/** By their names' ends, for systems that don't know a file's type. */
const typesByEnd: Record<string, string> = {
  aac: "aac",
  flac: "flac",
  m4a: "mp4",
  mp3: "mpeg",
  oga: "ogg",
  ogg: "ogg",
  opus: "ogg",
  wav: "wav",
  weba: "webm",
  webm: "webm",
};

/** For a file chooser: what is taken for a sound. */
export const soundFiles = ["audio/*", ...Object.keys(typesByEnd).map((end) => `.${end}`)].join();

function soundTypeOf({ name, type }: File): string | null {
  if (type.startsWith("audio/")) return type.split(";", 1)[0] ?? null;
  if (type !== "" && !/^(video\/(webm|ogg)|application\/ogg)$/.test(type)) return null;
  const known = typesByEnd[name.split(".").at(-1)?.toLowerCase() ?? ""];
  return known === undefined ? null : `audio/${known}`;
}

export const isSound = (file: File) => soundTypeOf(file) !== null;

/** The file as a sound of a type that is told plainly; null if it isn't one. */
export function soundOf(file: File): Blob | null {
  const type = soundTypeOf(file);
  return type === null ? null : new Blob([file], { type });
}

/** What was attached, apart: the pictures and the sounds, both as data URLs. */
export function apart(attached: readonly string[]): { images: string[]; sounds: string[] } {
  const isSoundUrl = (url: string) => url.startsWith("data:audio/");
  return {
    images: attached.filter((url) => !isSoundUrl(url)),
    sounds: attached.filter(isSoundUrl),
  };
}
