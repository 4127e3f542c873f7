import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

const NEAR_PIXELS = 32;

/**
 * Keeps a scrolled element at its end while its content grows, until the reader scrolls up, and
 * again once they are back at the end.
 */
export function useStickToEnd(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
) {
  const isSticking = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    isSticking.current = true;
    setAtEnd(true);
    element.scrollTop = element.scrollHeight;
  }, [scroller]);

  useEffect(() => {
    const element = scroller.current;
    const grown = content.current;
    if (!element || !grown) return;
    let lastTop = element.scrollTop;
    let lastHeight = element.scrollHeight;
    const onScroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = element;
      const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PIXELS;
      // Content that shrinks or is measured anew moves the position too; only a reader moves it
      // up while the content stays as tall as it was.
      if (isNear) isSticking.current = true;
      else if (scrollTop < lastTop && scrollHeight === lastHeight) isSticking.current = false;
      lastTop = scrollTop;
      lastHeight = scrollHeight;
      setAtEnd(isNear || isSticking.current);
    };
    const onWheel = ({ deltaY }: WheelEvent) => {
      if (deltaY < 0 && element.scrollTop > 0) isSticking.current = false;
    };
    const follow = new ResizeObserver(() => {
      if (isSticking.current) element.scrollTop = element.scrollHeight;
      lastHeight = element.scrollHeight;
    });
    follow.observe(grown);
    follow.observe(element);
    element.addEventListener("scroll", onScroll, { passive: true });
    element.addEventListener("wheel", onWheel, { passive: true });
    return () => {
      follow.disconnect();
      element.removeEventListener("scroll", onScroll);
      element.removeEventListener("wheel", onWheel);
    };
  }, [scroller, content]);

  return { isAtEnd, toEnd };
}
