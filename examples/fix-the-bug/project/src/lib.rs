//! A shop's till: what a purchase comes to, and which coins to give back.

/// Coins in cents, largest first.
const COINS: [u64; 8] = [200, 100, 50, 20, 10, 5, 2, 1];

/// One line of a receipt.
pub struct Line {
    pub name: &'static str,
    pub price_cents: u64,
    pub quantity: u64,
}

/// What all lines come to.
pub fn total_cents(lines: &[Line]) -> u64 {
    lines.iter().map(|line| line.price_cents).sum()
}

/// The fewest coins that make up `cents`.
pub fn change(cents: u64) -> Vec<u64> {
    let mut left = cents;
    let mut coins = Vec::new();
    for coin in COINS {
        while left > coin {
            coins.push(coin);
            left -= coin;
        }
    }
    coins
}
