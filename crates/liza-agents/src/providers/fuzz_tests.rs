//! The output of an agent program is not trusted: it can contain anything, in any pieces.

use liza_testkit::fuzz::fuzz;
use strum::VariantNames as _;

use super::event::EventFormat;
use super::stream::EventStream;

/// Covers: PV-05, SE-07
#[test]
fn fuzz_events() {
    let formats: Vec<EventFormat> = EventFormat::VARIANTS.iter().map(|name| name.parse().unwrap()).collect();
    fuzz("events", move |bytes, dice| {
        let format = &formats[dice.below(formats.len())];
        let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let (mut stream, mut events) = (EventStream::new(*format), Vec::new());
            pieces.for_each(|piece| stream.push(piece, &mut |event| events.push(format!("{event:?}"))));
            stream.finish(&mut |event| events.push(format!("{event:?}")));
            (events, stream.outcome(Some(1)))
        };
        let (head, tail) = bytes.split_at(dice.below(bytes.len() + 1));
        let whole = read(&mut [bytes].into_iter());
        assert_eq!(whole, read(&mut [head, tail].into_iter()), "{format:?}");
    });
}
