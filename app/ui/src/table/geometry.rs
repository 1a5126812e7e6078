//! Positions on the drawn table. Pure; in units of the drawing, 480 by 420.

use std::f64::consts::{PI, TAU};

/// A point of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

/// Width of the drawing.
pub const WIDTH: f64 = 480.0;
/// Height of the drawing.
pub const HEIGHT: f64 = 420.0;
/// Middle of the table.
pub const CENTRE: Point = Point { x: 240.0, y: 210.0 };
/// Radius of the table.
pub const TABLE: f64 = 94.0;

const SEATS_X: f64 = 164.0;
const SEATS_Y: f64 = 136.0;
const PLATES: f64 = 66.0;
/// Minimum distance of a hop's label from the centre, so that half of its width fits beside the pot.
const WORDS: f64 = 69.0;

/// Angle of a seat; `own` is nearest to the viewer, the others follow clockwise.
fn angle(index: usize, own: usize, seats: usize) -> f64 {
    let seats = seats.max(1);
    let steps = (index + seats - own % seats) % seats;
    PI / 2.0 + TAU * steps as f64 / seats as f64
}

/// Centre of a seat.
#[must_use]
pub fn seat(index: usize, own: usize, seats: usize) -> Point {
    let angle = angle(index, own, seats);
    Point { x: CENTRE.x + SEATS_X * angle.cos(), y: CENTRE.y + SEATS_Y * angle.sin() }
}

/// Centre of a seat's plate on the table.
#[must_use]
pub fn plate(index: usize, own: usize, seats: usize) -> Point {
    let angle = angle(index, own, seats);
    Point { x: CENTRE.x + PLATES * angle.cos(), y: CENTRE.y + PLATES * angle.sin() }
}

/// Radius of a seat; smaller if there are many.
#[must_use]
pub const fn seat_radius(seats: usize) -> f64 {
    match seats {
        0..=5 => 30.0,
        6..=8 => 25.0,
        _ => 19.0,
    }
}

/// A token's path across the plates and back to the first, as SVG path data. A single plate gets a loop around the pot. Nothing is
/// drawn between two stages on one plate.
#[must_use]
pub fn token_path(plates: &[Point]) -> String {
    let Some(first) = plates.first() else { return String::new() };
    let mut path = format!("M{:.1} {:.1}", first.x, first.y);
    if plates.len() == 1 {
        let far = Point { x: 2.0 * CENTRE.x - first.x, y: 2.0 * CENTRE.y - first.y };
        for end in [far, *first] {
            path.push_str(&format!("A{PLATES} {PLATES} 0 0 1 {:.1} {:.1}", end.x, end.y));
        }
        return path;
    }
    let next = plates.iter().cycle().skip(1);
    for (from, to) in plates.iter().zip(next).filter(|(from, to)| from != to) {
        let bend = bend(*from, *to);
        path.push_str(&format!("Q{:.1} {:.1} {:.1} {:.1}", bend.x, bend.y, to.x, to.y));
    }
    path
}

/// Control point that bends a line between two plates around the pot: outwards, or between opposite plates to the left
/// of its direction, so that both directions have separate lines.
fn bend(from: Point, to: Point) -> Point {
    let middle = Point { x: (from.x + to.x) / 2.0 - CENTRE.x, y: (from.y + to.y) / 2.0 - CENTRE.y };
    let outwards = if middle.x.hypot(middle.y) > 1.0 { middle } else { Point { x: to.y - from.y, y: from.x - to.x } };
    let scale = 1.3 * PLATES / outwards.x.hypot(outwards.y).max(1.0);
    Point { x: CENTRE.x + outwards.x * scale, y: CENTRE.y + outwards.y * scale }
}

/// The line of a message between two plates as SVG path data, and the position of its label: on the line, or outside of
/// it if the line passes close to the pot.
#[must_use]
pub fn message(from: Point, to: Point) -> (String, Point) {
    let bend = bend(from, to);
    let path = format!("M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}", from.x, from.y, bend.x, bend.y, to.x, to.y);
    let middle = |from: f64, bend: f64, to: f64| (from + 2.0 * bend + to) / 4.0;
    let (x, y) = (middle(from.x, bend.x, to.x) - CENTRE.x, middle(from.y, bend.y, to.y) - CENTRE.y);
    let outwards = (WORDS / x.hypot(y).max(1.0)).max(1.0);
    (path, Point { x: CENTRE.x + x * outwards, y: CENTRE.y + y * outwards })
}

/// Position of a seat's name and status: above the seats behind the table, below the others.
#[must_use]
pub fn label(seat: Point, radius: f64) -> (f64, f64) {
    if seat.y < CENTRE.y - radius {
        (seat.y - radius - 26.0, seat.y - radius - 9.0)
    } else {
        (seat.y + radius + 19.0, seat.y + radius + 36.0)
    }
}

/// Path data of a ring segment, clockwise from the top; `share` is from 0 to 1.
#[must_use]
pub fn ring(middle: Point, radius: f64, share: f64) -> String {
    let share = share.clamp(0.0, 1.0);
    if share <= 0.0 {
        return String::new();
    }
    // The arc of a full circle has coinciding ends and vanishes, so stop slightly earlier.
    let end = TAU * share.min(0.9999) - PI / 2.0;
    let large = u8::from(share > 0.5);
    format!(
        "M{:.1} {:.1}A{radius} {radius} 0 {large} 1 {:.2} {:.2}",
        middle.x,
        middle.y - radius,
        middle.x + radius * end.cos(),
        middle.y + radius * end.sin()
    )
}

/// Shortens a name to fit under a seat.
#[must_use]
pub fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let cut: String = name.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: Point, right: Point) -> bool {
        (left.x - right.x).hypot(left.y - right.y) < 1e-6
    }

    #[test]
    fn the_own_seat_is_nearest_to_the_viewer() {
        for (own, seats) in [(0, 1), (2, 3), (4, 5)] {
            let point = seat(own, own, seats);
            assert!(near(point, Point { x: CENTRE.x, y: CENTRE.y + SEATS_Y }), "{point:?}");
        }
    }

    #[test]
    fn seats_stay_inside_the_drawing_and_apart() {
        for seats in 1..=8 {
            let points: Vec<_> = (0..seats).map(|index| seat(index, 0, seats)).collect();
            let radius = seat_radius(seats);
            for (index, point) in points.iter().enumerate() {
                assert!(point.x - radius > 0.0 && point.x + radius < WIDTH);
                assert!(point.y - radius > 0.0 && point.y + radius < HEIGHT);
                for other in &points[..index] {
                    assert!((point.x - other.x).hypot(point.y - other.y) > 2.0 * radius, "{seats} seats");
                }
            }
        }
    }

    #[test]
    fn the_way_visits_every_plate_and_returns() {
        let plates: Vec<_> = (0..3).map(|index| plate(index, 0, 3)).collect();
        let path = token_path(&plates);
        assert_eq!(path.matches('Q').count(), 3);
        assert!(path.ends_with(&format!("{:.1} {:.1}", plates[0].x, plates[0].y)));
        assert_eq!(token_path(&[]), "");
        assert_eq!(token_path(&plates[..1]).matches('A').count(), 2);
        let both_ends = token_path(&[plates[0], plates[1], plates[0]]);
        assert_eq!(both_ends, token_path(&plates[..2]), "the last stage is where the first one is");
    }

    #[test]
    fn lines_go_around_the_pot_and_there_is_not_back() {
        let (near, far) = (plate(0, 0, 2), plate(1, 0, 2));
        let (there, back) = (bend(near, far), bend(far, near));
        assert!((there.x - CENTRE.x) * (back.x - CENTRE.x) < 0.0);
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            let control = bend(plate(from, 0, 3), plate(to, 0, 3));
            assert!((control.x - CENTRE.x).hypot(control.y - CENTRE.y) > PLATES);
        }
    }

    #[test]
    fn the_words_of_a_message_stand_beside_the_pot_and_not_on_the_way_back() {
        let (near, far) = (plate(0, 0, 2), plate(1, 0, 2));
        let ((path, there), (_, back)) = (message(near, far), message(far, near));
        assert!(path.starts_with('M') && path.ends_with(&format!("{:.1} {:.1}", far.x, far.y)), "{path}");
        assert!((there.x - back.x).hypot(there.y - back.y) > 40.0, "{there:?} {back:?}");
        assert!((there.x - CENTRE.x).hypot(there.y - CENTRE.y) > 26.0 + 24.0, "beside the pot: {there:?}");
    }

    #[test]
    fn labels_stay_inside_the_drawing() {
        for seats in 1..=8 {
            for index in 0..seats {
                let (name, words) = label(seat(index, 0, seats), seat_radius(seats));
                assert!(name > 12.0 && words < HEIGHT, "{seats} seats");
            }
        }
    }

    #[test]
    fn rings_show_shares() {
        assert_eq!(ring(CENTRE, 10.0, 0.0), "");
        assert!(ring(CENTRE, 10.0, 0.75).contains("0 1 1"));
        assert!(ring(CENTRE, 10.0, 0.25).contains("0 0 1"));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(short("Kitchen laptop", 14), "Kitchen laptop");
        assert_eq!(short("The very long name", 9), "The very…");
    }
}
